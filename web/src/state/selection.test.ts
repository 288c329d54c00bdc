import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  decodeGroup,
  decodeUnits,
  encodeGroup,
  encodeUnits,
  type GroupPath,
  LONGEST_UNITS,
  selectionField,
  shortenUnits,
} from "./selection.ts";

const usual = fc.oneof(
  fc.tuple(fc.nat(1300), fc.nat(15)).map(([node, index]) => `gpu-${String(node).padStart(4, "0")}:${index}`),
  fc.tuple(fc.nat(20), fc.nat(3), fc.nat(6)).map(([node, index, slice]) => `n${node}:${index}/${slice}`),
  fc.tuple(fc.nat(99), fc.nat(40)).map(([job, ordinal]) => `slurm:${job}#${ordinal}`),
);
const odd = fc.oneof(
  fc.string({ minLength: 1 }),
  fc.string({
    unit: fc.constantFrom("a", "0", "7", ":", "#", "/", ",", ".", "-", "~", "%", "=", "2"),
    minLength: 1,
    maxLength: 9,
  }),
);

function sorted(names: Iterable<string>): readonly string[] {
  return [...new Set(names)].sort();
}

describe("a set of units", () => {
  it("reads back as the same set, whatever units are called", () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(usual, odd), { minLength: 1, maxLength: 60 }), (names) => {
        expect(sorted(decodeUnits(encodeUnits(names))?.names ?? [])).toEqual(sorted(names));
      }),
      { numRuns: 500 },
    );
  });

  it("is short where units are neighbors", () => {
    const whole = Array.from({ length: 80 }, (_, at) => `gpu-${String(at >> 3).padStart(3, "0")}:${at & 7}`);
    expect(encodeUnits(whole)).toBe("gpu-000..009:0-7");
    expect(encodeUnits([...whole, "gpu-012:0", "gpu-012:1", "gpu-012:5"])).toBe("gpu-000..009:0-7,gpu-012:0-1.5");
    expect(encodeUnits(["n9:0", "n10:0"])).toBe("n10:0,n9:0");
    expect(encodeUnits(["slurm:12#1", "slurm:12#0"])).toBe("slurm:12#0-1");
  });

  it("keeps its first units where a link has no room for all, and says how many are missing", () => {
    const names = Array.from({ length: 3000 }, (_, at) => `gpu-${String(at * 2).padStart(5, "0")}:${at % 8}`);
    const key = encodeUnits(names);
    const short = shortenUnits(key);
    expect(short.length).toBeLessThanOrEqual(LONGEST_UNITS);
    const read = decodeUnits(short);
    expect((read?.names.length ?? 0) + (read?.leftOut ?? 0)).toBe(3000);
    expect(names).toEqual(expect.arrayContaining([...(read?.names ?? [])]));
    expect(shortenUnits(short)).toBe(short);
  });

  it("is nonsense where it would never end", () => {
    for (const text of ["n0..99999999:0-7", "n:0-99999999", "n:5-2", "", "n:0,,n:1", "~5", "n9..10:0", "n:1..2"]) {
      expect(decodeUnits(text)).toBeNull();
    }
  });
});

describe("a group", () => {
  const name = fc.option(fc.string(), { nil: null });
  const steps = fc.array(fc.record({ attribute: fc.constantFrom("project", "user", "machine_type"), name }), {
    minLength: 1,
  });

  it("reads back as the same path", () => {
    fc.assert(
      fc.property(fc.constantFrom("all", "gpus", "requested"), steps, (scope, path) => {
        const group: GroupPath = { scope, steps: path };
        expect(decodeGroup(encodeGroup(group))).toEqual(group);
      }),
    );
  });

  it("can be read by people", () => {
    const steps = [
      { attribute: "project", name: "nlp-core" },
      { attribute: "user", name: null },
    ];
    expect(encodeGroup({ scope: "gpus", steps })).toBe("gpus/project=nlp-core/user");
    expect(decodeGroup("gpus")).toBeNull();
    expect(decodeGroup("some/project=a")).toBeNull();
  });
});

describe("the selection in a link", () => {
  it("is left out where it makes no sense", () => {
    const field = selectionField("select");
    expect(field.parse(["units:gpu-001:0-3"])).toEqual({ kind: "units", key: "gpu-001:0-3" });
    expect(field.parse(["node:gpu-001"])).toEqual({ kind: "node", key: "gpu-001" });
    expect(field.parse(["workload:3_7.0"])).toEqual({ kind: "workload", key: "slurm:3_7" });
    for (const text of ["units:", "units:n:9-1", "group:gpus", "planet:mars", ""]) {
      expect(field.parse([text])).toBeUndefined();
    }
  });
});
