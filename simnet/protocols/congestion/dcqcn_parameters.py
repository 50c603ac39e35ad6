"""The numbers of DCQCN: those of its paper, and those that NVIDIA's adapters come with."""

from __future__ import annotations

from simnet.protocols.defaults import Default
from simnet.units import GIGABIT_PER_S, MICROSECOND

__all__ = ["PAPER", "VENDOR"]

_PAPER = "Y. Zhu et al., SIGCOMM 2015"
_MODEL = "Y. Zhu et al., CoNEXT 2016, table of the model"
_FIRMWARE = "NVIDIA DCQCN CC Parameters (DOCA)"
_DUMP = "as mlxconfig prints it"
_MEGABIT_PER_S = GIGABIT_PER_S / 1000

PAPER = (
    Default("alpha_gain", 1 / 256, f"g: {_PAPER}, from memory; HPCC's simulator"),
    Default("alpha_period_s", 55 * MICROSECOND, f"tau': {_PAPER}, from memory; longer than tau"),
    Default("loss_notification", False, f"of marks alone: {_PAPER}"),
    Default("notification_interval_s", 50 * MICROSECOND, f"tau: {_PAPER}, from memory"),
    Default("notification_delay_s", 0.0, f"in the paper part of the delay of the loop: {_MODEL}"),
    Default("decrease_interval_s", 0.0, f"a cut for each notification: {_PAPER}"),
    Default("increase_period_s", 55 * MICROSECOND, f"T: {_PAPER}, from memory; QCN has 1.5 ms"),
    Default("increase_bytes", 10e6, f"B: {_PAPER}, from memory; QCN has 150 kB"),
    Default("recovery_steps", 5.0, f"F, five stages: {_MODEL}"),
    Default("additive_increase_bytes_per_s", 40 * _MEGABIT_PER_S, f"R_AI: {_MODEL}"),
    Default("hyper_increase_bytes_per_s", 200 * _MEGABIT_PER_S, "R_HAI: configuration of ns3-rdma"),
    Default("minimum_rate_bytes_per_s", 10 * _MEGABIT_PER_S, f"{_PAPER}, from memory"),
)
"""What `simnet.protocols.Transport` has without arguments."""

VENDOR = (
    Default("alpha_gain", 5 / 1024, f"DCE_TCP_G 1019: so many of 1024 are kept ({_FIRMWARE})"),
    Default("alpha_period_s", 1 * MICROSECOND, f"DCE_TCP_RTT 1 ({_FIRMWARE})"),
    Default(
        "loss_notification",
        True,
        "ConnectX-5 and 6, not 4, send a notification along with each complaint (lumina-test/lumina, cnp_check.py: Z. "
        "Yu et al., SIGCOMM 2023) where slow restart is on, as ROCE_ACCL has it by default",
    ),
    Default("notification_interval_s", 4 * MICROSECOND, f"MIN_TIME_BETWEEN_CNPS 4 ({_DUMP}; older ones 2 or 0)"),
    Default(
        "notification_delay_s",
        5 * MICROSECOND,
        "estimated. 55 us were needed to see the pauses of real adapters (aliyun/ns-3-alibabacloud issue 12)",
    ),
    Default("decrease_interval_s", 4 * MICROSECOND, f"RATE_REDUCE_MONITOR_PERIOD 4 ({_FIRMWARE})"),
    Default("increase_period_s", 300 * MICROSECOND, f"RPG_TIME_RESET 300 ({_DUMP})"),
    Default(
        "increase_bytes",
        32767 * 64.0,
        f"RPG_BYTE_RESET 32767 ({_DUMP}), in units of 64 B, from memory: Spirent's DCQCN profile has 2 MB as well, but "
        "mlxconfig says bytes",
    ),
    Default("recovery_steps", 1.0, f"RPG_THRESHOLD 1 ({_DUMP})"),
    Default("additive_increase_bytes_per_s", 5 * _MEGABIT_PER_S, f"RPG_AI_RATE 5 ({_DUMP})"),
    Default("hyper_increase_bytes_per_s", 50 * _MEGABIT_PER_S, f"RPG_HAI_RATE 50 ({_DUMP})"),
    Default("minimum_rate_bytes_per_s", 1 * _MEGABIT_PER_S, f"RPG_MIN_RATE 1 ({_FIRMWARE})"),
)
"""What ``congestion_control: dcqcn_vendor`` means."""
