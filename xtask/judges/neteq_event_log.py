"""Reads arrivals and playout from an event log of WebRTC (`rtc_event_log2.proto` in libwebrtc).

The file is one message of protocol buffers. It has batches of events: the fields of the first event in plain, those
of the others as differences from event to event, in bits (`delta_encoding.cc`).
"""

import collections

INCOMING_RTP, PLAYOUT = 2, 6  # Fields of EventStream.
# Kinds of fields in protocol buffers, and the bytes of those of fixed length.
VARINT, BYTES = 0, 2
LENGTHS = {1: 8, 5: 4}


def read(path):
    """The arrivals of each stream as (time in ms, sequence number, timestamp), and the times in ms at which each stream
    was asked for 10 ms of sound, by SSRC."""
    arrivals, playouts = collections.defaultdict(list), collections.defaultdict(list)
    with open(path, "rb") as file:
        stream = file.read()
    for field, batch in fields(stream):
        if field == INCOMING_RTP:
            batch = dict(fields(batch))
            columns = [column(batch, *place) for place in [(1, 101, 11), (4, 104, 11), (5, 105, 11)]]
            ssrc = as_number(batch[6])
            arrivals[ssrc] += zip(*columns)
        elif field == PLAYOUT:
            batch = dict(fields(batch))
            for time, ssrc in zip(column(batch, 1, 101, 3), column(batch, 2, 102, 3)):
                playouts[ssrc].append(time)
    return arrivals, playouts


def fields(message):
    """The fields of a message of protocol buffers, as (number, value). A log that is still written may end within a
    field, which is left out."""
    place = 0
    while place < len(message):
        try:
            key, place = varint(message, place)
            kind = key & 7
            if kind == VARINT:
                value, place = varint(message, place)
            elif kind in LENGTHS or kind == BYTES:
                length, place = (LENGTHS[kind], place) if kind in LENGTHS else varint(message, place)
                value, place = message[place:place + length], place + length
            else:
                raise ValueError(f"event log: kind {kind} of a field")
        except IndexError:
            return
        if place <= len(message):
            yield key >> 3, value


def varint(message, place):
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


def as_number(value):
    return int.from_bytes(value, "little") if isinstance(value, bytes) else value


def column(batch, first, differences, count):
    """The values of a field of all events of a batch."""
    value = as_number(batch[first])
    values = [value]
    count = batch.get(count, 0)
    coded = batch.get(differences, b"")
    if not coded:
        return values * (count + 1)
    bits = "".join(f"{byte:08b}" for byte in coded)
    encoding, width, place = int(bits[:2], 2), int(bits[2:8], 2) + 1, 8
    is_signed, value_width = False, 64
    if encoding == 1:
        is_signed, is_optional, value_width = bits[8] == "1", bits[9] == "1", int(bits[10:16], 2) + 1
        place = 16
        if is_optional:
            raise ValueError("event log: a field that some events do not have")
    elif encoding != 0:
        raise ValueError(f"event log: encoding {encoding}")
    for _ in range(count):
        difference = int(bits[place:place + width], 2)
        place += width
        if is_signed and difference >> (width - 1):
            difference -= 1 << width
        value = (value + difference) % (1 << value_width)
        values.append(value)
    return values
