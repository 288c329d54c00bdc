// The fixtures were written by Polars as the server writes them: enums as dictionaries of string views, nulls in every
// kind of column.

import { readFileSync } from "node:fs";
import { dictionary, tableFromArrays, tableToIPC, uint16, utf8 } from "@uwdata/flechette";
import { describe, expect, it } from "vitest";
import { decodeColumns, nameAt, numberAt } from "./columns.ts";
import { toSeriesLines } from "./series.ts";
import { toSnapshot } from "./snapshot.ts";
import { toTick } from "./tick.ts";

const read = (name: string) =>
  decodeColumns(new Uint8Array(readFileSync(new URL(`./fixtures/${name}.arrow`, import.meta.url))));

describe("a snapshot", () => {
  const snapshot = toSnapshot(read("snapshot"), 12);
  const rows = [0, 1, 2, 3];

  it("has names as codes into a dictionary, null where missing", () => {
    const user = snapshot.names("user");
    expect([...user.codes]).toEqual([1, 0, 0, 2]);
    expect(user.names).toEqual([null, "ada", "grace"]);
    expect(rows.map((row) => nameAt(snapshot.names("node"), row))).toEqual(["gpu-001", "gpu-001", "gpu-002", null]);
  });

  it("has plain strings as names too", () => {
    const unit = snapshot.names("unit");
    expect(rows.map((row) => nameAt(unit, row))).toEqual(["gpu-001:0", "gpu-001:1", "gpu-002:0", "slurm:7#0"]);
  });

  it("has numbers of every width, null where missing", () => {
    const numbers = (column: Parameters<typeof snapshot.numbers>[0]) =>
      rows.map((row) => numberAt(snapshot.numbers(column), row));
    expect(numbers("index")).toEqual([0, 1, 0, null]);
    expect(numbers("memory_bytes")).toEqual([80 * 2 ** 30, 80 * 2 ** 30, null, null]);
    expect(numbers("priority")).toEqual([5_000_000_000, null, null, 7]);
    expect(numbers("started_at")).toEqual([1794733998995, null, null, null]);
    expect(numbers("holders")).toEqual([1, 0, 0, 0]);
  });

  it("takes a column the server does not send as missing", () => {
    expect(rows.map((row) => nameAt(snapshot.names("rack"), row))).toEqual([null, null, null, null]);
    expect(numberAt(snapshot.numbers("restarts"), 0)).toBeNull();
  });

  it("is decoded once", () => {
    expect(snapshot.names("user")).toBe(snapshot.names("user"));
  });
});

describe("a tick", () => {
  const tick = toTick(
    read("tick"),
    { gpu_util_ratio: [0, 1], power_watts: [0, 2000] },
    { inventoryVersion: 12, tickVersion: 3, sampledAt: 1000 },
  );

  it("is scaled back, and 65535 is missing", () => {
    expect([...(tick.find("gpu_util_ratio") ?? [])]).toEqual([expect.closeTo(0.5, 4), 0, Number.NaN, Number.NaN]);
    expect(tick.find("power_watts")?.[0]).toBeCloseTo(2000, 2);
  });

  it("has only what was asked for", () => expect(tick.find("energy_joules")).toBeNull());
});

describe("series", () => {
  it("are cut into one line per metric and unit", () => {
    const lines = toSeriesLines(read("series"));
    expect(lines.map(({ metric, unit }) => `${metric} ${unit}`)).toEqual([
      "gpu_util_ratio a",
      "gpu_util_ratio b",
      "power_watts a",
    ]);
    expect([...(lines[2]?.values ?? [])]).toEqual([100, 200]);
    expect([...(lines[2]?.maxima ?? [])]).toEqual([110, 220]);
    expect([...(lines[1]?.timesMs ?? [])]).toEqual([1000, 2000]);
  });
});

describe("decodeColumns", () => {
  it("joins batches", () => {
    const table = tableFromArrays(
      { name: ["b", null, "a", "c", "b"], value: [1, 2, 3, 4, null] },
      { types: { name: dictionary(utf8()), value: uint16() }, maxBatchRows: 3 },
    );
    expect(table.getChild("name").data).toHaveLength(2);
    const columns = decodeColumns(tableToIPC(table, { format: "stream" }) ?? new Uint8Array());
    const names = columns.findNames("name");
    expect(names && [0, 1, 2, 3, 4].map((row) => nameAt(names, row))).toEqual(["b", null, "a", "c", "b"]);
    expect([...(columns.findNumbers("value") ?? [])]).toEqual([1, 2, 3, 4, Number.NaN]);
    expect(columns.findNames("nothing")).toBeNull();
  });

  it("takes an empty table", () => {
    const empty = tableFromArrays({ name: [] as string[] }, { types: { name: utf8() } });
    const columns = decodeColumns(tableToIPC(empty, { format: "stream" }) ?? new Uint8Array());
    expect(columns.rowCount).toBe(0);
    expect(columns.findNames("name")?.names).toEqual([null]);
  });
});
