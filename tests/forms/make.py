#!/usr/bin/env python3
"""Makes the files of this folder: one job in which rank 5 of 16 is slow, in types that other writers choose. Needs pyarrow."""

import decimal
import os

import numpy
import pyarrow
import pyarrow.ipc
import pyarrow.parquet

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROWS = [(rank, iteration) for iteration in range(20) for rank in range(16)]
SECONDS = [(1 + 0.001 * ((rank * 7 + iteration * 3) % 11)) * (1.5 if rank == 5 else 1) for rank, iteration in ROWS]
DECIMALS = [decimal.Decimal(f"{seconds:.6f}") for seconds in SECONDS]
START = 1_772_352_000


def times(zone: str | None) -> pyarrow.Array:
    return pyarrow.array([(START + 10 * iteration) * 10**6 for _, iteration in ROWS], pyarrow.timestamp("us", zone))


def words(texts: list[str], keys: pyarrow.DataType) -> pyarrow.Array:
    return pyarrow.array(texts).dictionary_encode().cast(pyarrow.dictionary(keys, pyarrow.string()))


NODES = [f"node-{rank // 8}" for rank, _ in ROWS]
TABLE = {
    "timestamp": times("UTC"),
    "job": pyarrow.array(["j"] * len(ROWS)),
    "metric_name": pyarrow.array(["megatron_timers"] * len(ROWS)),
    "subname": pyarrow.array(["forward-compute"] * len(ROWS)),
    "rank": pyarrow.array([rank for rank, _ in ROWS], pyarrow.int32()),
    "iteration": pyarrow.array([iteration for _, iteration in ROWS], pyarrow.int64()),
    "metric_values": pyarrow.array([[seconds] for seconds in SECONDS]),
    "node": pyarrow.array(NODES),
}
OTHER = {
    "fixed-size-list": {"metric_values": pyarrow.array([[seconds] for seconds in SECONDS], pyarrow.list_(pyarrow.float32(), 1))},
    "half-float": {
        "metric_values": pyarrow.array([[numpy.float16(seconds)] for seconds in SECONDS], pyarrow.list_(pyarrow.float16()))
    },
    "decimal": {
        "metric_values": pyarrow.array([[number] for number in DECIMALS], pyarrow.list_(pyarrow.decimal128(18, 6))),
        "rank": pyarrow.array([decimal.Decimal(rank) for rank, _ in ROWS], pyarrow.decimal128(10, 0)),
    },
    "scalar": {"metric_values": pyarrow.array(SECONDS)},
    "zone-offset": {"timestamp": times("+05:30")},
    "zone-z": {"timestamp": times("Z")},
    "enum": {
        "job": words(["j"] * len(ROWS), pyarrow.int8()),
        "subname": words(["forward-compute"] * len(ROWS), pyarrow.uint16()),
        "node": words(NODES, pyarrow.int8()),
    },
}


def write_arrow(name: str, stream: bool, batches: list[pyarrow.RecordBatch], **options) -> None:
    made = pyarrow.ipc.new_stream if stream else pyarrow.ipc.new_file
    settings = pyarrow.ipc.IpcWriteOptions(compression="zstd", **options)
    with made(os.path.join(FOLDER, name), batches[0].schema, options=settings) as writer:
        for batch in batches:
            writer.write_batch(batch)


def growing() -> list[pyarrow.RecordBatch]:
    """Batches of which each knows more nodes than the one before."""
    known: list[str] = []
    batches = []
    for begin in range(0, len(ROWS), 80):
        nodes = NODES[begin : begin + 80]
        known += [node for node in dict.fromkeys([*nodes, f"spare-{begin}"]) if node not in known]
        codes = pyarrow.array([known.index(node) for node in nodes], pyarrow.int32())
        columns = {name: column.slice(begin, 80) for name, column in TABLE.items()}
        columns["node"] = pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array(list(known)))
        batches.append(pyarrow.RecordBatch.from_pydict(columns))
    return batches


for name, columns in OTHER.items():
    table = pyarrow.table({**TABLE, **columns})
    pyarrow.parquet.write_table(table, os.path.join(FOLDER, f"{name}.parquet"), compression="zstd")
    write_arrow(f"{name}.arrow", False, table.to_batches())
    write_arrow(f"{name}.arrows", True, table.to_batches())
for name, stream in (("delta-dictionary.arrow", False), ("delta-dictionary.arrows", True)):
    write_arrow(name, stream, growing(), emit_dictionary_deltas=True)
