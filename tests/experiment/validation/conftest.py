"""A folder with a few made-up measurements and the descriptions of their data sets."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from simnet.experiment.validation import Measurement

HEADER = ",".join(field.name for field in fields(Measurement))

ROWS = """\
1,small,input,two hosts,none,none,alone,ResNet-50,32,fp32,1,,throughput,,320,images/s,me,table,primary,
2,small,validation,two hosts,fast,ideal,ring,ResNet-50,32,fp32,2,,throughput,,640,images/s,me,table,primary,
3,small,validation,two hosts,slow,ideal,ring,ResNet-50,32,fp32,2,,throughput,,400,images/s,me,table,primary,
4,small,validation,two hosts,slow,ideal,ring,VGG-16,32,fp32,2,,throughput,,40,images/s,me,table,primary,
5,small,validation,two hosts,odd,ideal,ring,ResNet-50,32,fp32,2,,throughput,,40,images/s,me,table,primary,
6,times,calibration,two hosts,fast,ideal,ring,,,,2,,allreduce_time,1000000,1002,us,me,table,primary,
7,times,calibration,two hosts,fast,ideal,ring,,,,2,,allreduce_busbw,1000000,1,GB/s,me,table,primary,
8,times,calibration,two hosts,fast,ideal,ring,,,,2,,allreduce_time,10,500,ms,me,table,primary,
"""

SMALL = """\
about: Made up.
play: training
scenario:
  protocol: ideal
  workload: {model: resnet50}
rules:
  - where: {network: fast}
    set: {topology: {star: {hosts: 2, bandwidth: 100 Gbps, latency: 0 s}}}
  - where: {network: slow}
    set: {topology: {star: {hosts: 2, bandwidth: 1 Gbps, latency: 0 s}}, training.overlap: false}
    assumed: nothing overlaps
  - where: {network: odd}
    leave_out: nobody knows how
"""

TIMES = """\
about: Made up.
play: collective
scenario: {collective: all_reduce, algorithm: ring, protocol: {ideal: {}}}
rules:
  - where: {size_bytes: ">= 1000"}
    set: {launch: 2 us, topology: {star: {hosts: 2, bandwidth: 8 Gbps, latency: 0 s}}}
"""


@pytest.fixture
def folder(tmp_path) -> Path:
    """Return a folder with measurements and descriptions."""
    (tmp_path / "measurements.csv").write_text(f"{HEADER}\n{ROWS}")
    (tmp_path / "small.yaml").write_text(SMALL)
    (tmp_path / "times.yaml").write_text(TIMES)
    return tmp_path
