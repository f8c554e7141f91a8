"""To which of two queues a NIC spreads the frames of a link by RSS.

The hash is Toeplitz' over addresses and UDP ports, with the key that DPDK gives to virtio; a queue
is its lowest bit.  A link says on UDP port P what is for queue 0, and on P + 1 what is for queue
1.  So P decides whether all frames come where they belong, or none.
"""

import ipaddress

# The second one is chosen so that both directions of a link go the same way.
MACS = ("02:00:00:00:00:60", "02:00:00:00:00:63")
PORTS = range(6125, 6225)
KEY = bytes.fromhex("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b4"
                    "77cb2da38030f20c6a42b73bbeac01fa")
HASH_BITS = 32


def toeplitz(data):
    key, key_bits = int.from_bytes(KEY, "big"), 8 * len(KEY)
    value, bits, result = int.from_bytes(data, "big"), 8 * len(data), 0
    for i in range(bits):
        if value >> (bits - 1 - i) & 1:
            result ^= key >> (key_bits - HASH_BITS - i) & (2**HASH_BITS - 1)
    return result


def address(mac):
    """What a link is given that is told none (`weir.link.address`)."""
    high, low = (int(digits, 16) for digits in mac.split(":")[-2:])
    return ipaddress.IPv4Address(f"169.254.{high % 254 + 1}.{low}").packed


def queue(source, target, port):
    return toeplitz(source + target + 2 * port.to_bytes(2, "big")) % 2


def udp_port(is_straight):
    """A port from which on all frames come to their own queue, or all to the other one."""
    one, other = (address(mac) for mac in MACS)
    for port in PORTS:
        if all(queue(*pair, port + i) == (i if is_straight else 1 - i)
               for pair in ((one, other), (other, one)) for i in (0, 1)):
            return port
    raise ValueError("no port is like that with these addresses")
