"""Makes `checked.parquet`: the rows of `files.rs` with data pages of the second kind and checksums (pyarrow)."""

import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

rows = [(iteration, rank) for iteration in range(1, 21) for rank in range(16)]


def seconds(iteration, rank):
    uneven = 1 + 0.001 * ((rank * 7 + iteration * 3) % 11)
    return [1.5 * uneven if rank == 5 else uneven]


table = pa.table(
    {
        "timestamp": pa.array([1767254400 + 10 * iteration for iteration, _ in rows], pa.int64()),
        "job": ["job"] * len(rows),
        "metric_name": ["megatron_timers"] * len(rows),
        "subname": ["forward-compute"] * len(rows),
        "rank": pa.array([rank for _, rank in rows], pa.int32()),
        "iteration": pa.array([iteration for iteration, _ in rows], pa.int64()),
        "node": [f"gpu-{rank // 8:03}" for _, rank in rows],
        "metric_values": pa.array([seconds(*row) for row in rows], pa.list_(pa.float64())),
        "attributes": ["{}"] * len(rows),
        "rerun_uuid": ["r0"] * len(rows),
    }
)
pq.write_table(
    table,
    pathlib.Path(__file__).with_name("checked.parquet"),
    row_group_size=120,
    compression="zstd",
    data_page_version="2.0",
    write_page_checksum=True,
    write_page_index=False,
)

corpus = pathlib.Path(__file__).with_name("corpus")


def damaged(name, whole, at, change):
    """The whole file with a byte or some changed."""
    changed = bytearray(whole)
    changed[at : at + len(change)] = change
    (corpus / name).write_bytes(changed)


whole = pathlib.Path(__file__).with_name("checked.parquet").read_bytes()
# A page header begins with its type (0x15, number) and the size that it decodes to (0x15, number): odd is negative.
damaged("refused-negative-page.parquet", whole, 7, bytes([whole[7] | 1]))
# A bit of a value, which only its checksum tells.
damaged("refused-checksum.parquet", whole, 60, bytes([whole[60] ^ 1]))
# The number of rows in the footer.
damaged("refused-cut-footer.parquet", whole[:-1], len(whole) - 6, b"\xff\xff")

sink = pa.BufferOutputStream()
options = pa.ipc.IpcWriteOptions(compression="lz4")
with pa.ipc.new_file(sink, table.schema, options=options) as writer:
    writer.write_table(table)
whole = sink.getvalue().to_pybytes()
# A compressed buffer begins with the length that it decodes to; its frame begins with this mark.
frame = whole.index(b"\x04\x22\x4d\x18")
damaged("refused-endless-buffer.arrow", whole, frame - 8, b"\xff\xff\xff\xff\xff\xff\xff\x7f")
