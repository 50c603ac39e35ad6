"""What is compiled of the packet-level fabric: ports, queues, pauses, and the events of packets."""
