"""PLCMOS as the package speechmos computes it, in a seventh of the time.

The network rates a piece with fifteen imaginary raters, who are random numbers, and takes the mean. Only its last layers depend on the rater, but the package
runs all layers for each. Here the model is cut in two: what hears the piece runs once, and what a rater makes of it fifteen times. The file of the model is a
message of protobuf (onnx.proto: ModelProto.graph is field 7; GraphProto has node 1, input 11 and output 12; NodeProto has input 1 and output 2), of which each
half keeps its nodes. The first piece is also heard by the package, and has to have the same value.
"""

import functools

import numpy as np
import onnxruntime
from speechmos import plcmos

GRAPH, NODE, INPUT, OUTPUT = 7, 1, 11, 12
RATER, PIECE = "rater_embed", "degraded_audio"


def fields(message):
    """The fields of a message of protobuf: number, value, and the bytes of both."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        begin = at
        key = varint()
        if key & 7 == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}.get(key & 7) or varint()
            value = message[at : at + size]
            at += size
        yield key >> 3, value, message[begin:at]


def field(number, value):
    """A field whose value is a message or a text."""

    def varint(value):
        return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)

    return varint(number << 3 | 2) + varint(len(value)) + value


def numbers(name):
    """The description of an input or output of floats (ValueInfoProto)."""
    return field(1, name.encode()) + field(2, field(1, bytes([1 << 3, 1])))


def names(message, wanted):
    return [value.decode() for number, value, _ in fields(message) if number == wanted]


def halves(model):
    """The model of the layers before the rater, the model of the layers after it, and the names of what the first passes to the second."""
    graph = next(value for number, value, _ in fields(model) if number == GRAPH)
    nodes = [(names(value, 1), names(value, 2), raw) for number, value, raw in fields(graph) if number == NODE]
    by_rater = {RATER}
    for inputs, outputs, _ in nodes:
        if by_rater.intersection(inputs):
            by_rater.update(outputs)
    late = [node for node in nodes if by_rater.intersection(node[0])]
    early = [node for node in nodes if not by_rater.intersection(node[0])]
    needed = {name for inputs, _, _ in late for name in inputs}
    # A constant has no input, and is in both halves.
    constants = [node for node in early if not node[0] and needed.intersection(node[1])]
    passed = sorted(name for inputs, outputs, _ in early if inputs for name in outputs if name in needed)
    shared, outputs = b"", b""
    for number, value, raw in fields(graph):
        if number == OUTPUT:
            outputs += raw
        elif number != NODE and not (number == INPUT and names(value, 1)[0] in (RATER, PIECE)):
            shared += raw
    inputs = {names(value, 1)[0]: raw for number, value, raw in fields(graph) if number == INPUT}
    bytes_of = lambda nodes: b"".join(raw for _, _, raw in nodes)
    first = bytes_of(early) + shared + inputs[PIECE] + b"".join(field(OUTPUT, numbers(name)) for name in passed)
    second = bytes_of(constants + late) + shared + inputs[RATER] + outputs
    second += b"".join(field(INPUT, numbers(name)) for name in passed)
    whole = lambda graph: b"".join(field(GRAPH, graph) if number == GRAPH else raw for number, _, raw in fields(model))
    return whole(first), whole(second), passed


@functools.cache
def network():
    """Returns a function of a piece at 16 kHz: its score."""
    judge = plcmos.PLCMOS()
    with open(judge.model_path, "rb") as file:
        first, second, passed = halves(file.read())
    # Each process has a processor to itself.
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    # Each half has the numbers of both, and a warning for each that it does not need.
    options.log_severity_level = 3
    hears, rates = (onnxruntime.InferenceSession(half, options) for half in (first, second))
    is_checked = False

    def score(piece):
        nonlocal is_checked
        # The raters are random numbers.
        np.random.seed(1)
        heard = dict(zip(passed, hears.run(passed, {PIECE: np.float32(judge.stft_transform(piece))[None, None]})))
        raters = [np.random.normal(size=(1, 64)).astype(np.float32) for _ in range(judge.embed_rounds)]
        value = float(np.mean([np.ravel(rates.run(None, {RATER: rater} | heard)[0])[0] for rater in raters]))
        if not is_checked:
            np.random.seed(1)
            whole = judge(piece)["plcmos"]
            assert abs(whole - value) < 1e-5, f"the model in two halves gives {value}, and the whole one {whole}"
            is_checked = True
        return value

    return score
