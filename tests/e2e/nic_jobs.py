"""Job files of what comes to ports of packets."""


def metering(name, ports, parameters=""):
    """One that meters the flows of all ports together: each has a vertex `ingestN` of `sourceN`,
    with these further parameters, and `parseN`."""
    lines = [f"name: {name}", "vertices:"]
    for i, port in enumerate(ports):
        lines += [f"  - uid: ingest{i}",
                  "    operators:",
                  f"      - {{uid: source{i}, type: nic-source, port: {port}{parameters}}}",
                  f"      - {{uid: parse{i}, type: flow-parse}}"]
    lines += ["  - uid: metering",
              "    operators:",
              "      - {uid: window, type: flow-window, size: 1 s}",
              "      - {uid: sink, type: file-sink, path: flows, format: flow-csv}",
              "edges:"]
    lines += [f"  - {{from: ingest{i}, to: metering, partition: hash}}" for i in range(len(ports))]
    return "\n".join(lines) + "\n"
