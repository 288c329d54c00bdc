import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { generateTypes, type OpenApi } from "./types.ts";

const root = new URL("../", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), "utf8");

describe("generateTypes", () => {
  it("gives what is committed when the schema has not changed", () => {
    const document = JSON.parse(read("openapi.json")) as OpenApi;
    expect(generateTypes(document), "run `npm run codegen`").toBe(read("src/api/generated.ts"));
  });

  it("writes optional, nullable, listed and mapped fields", () => {
    const text = generateTypes({
      components: {
        schemas: {
          Kind: { type: "string", enum: ["a", "b"] },
          Thing: {
            type: "object",
            description: "A thing.",
            required: ["kind", "at"],
            properties: {
              kind: { $ref: "#/components/schemas/Kind" },
              at: { anyOf: [{ type: "integer" }, { type: "null" }] },
              names: { type: "array", items: { anyOf: [{ type: "string" }, { type: "null" }] } },
              tags: { type: "object", additionalProperties: { type: "string" } },
            },
          },
        },
      },
    });
    expect(text).toContain('export type Kind = "a" | "b";');
    expect(text).toContain("/** A thing. */\nexport interface Thing {");
    expect(text).toContain("  readonly kind: Kind;");
    expect(text).toContain("  readonly at: number | null;");
    expect(text).toContain("  readonly names?: readonly (string | null)[];");
    expect(text).toContain("  readonly tags?: Readonly<Record<string, string>>;");
  });

  it("leaves free-form objects open", () => {
    const open = {
      type: "object",
      additionalProperties: true,
      required: ["title"],
      properties: { title: { type: "string" } },
    };
    const keeper = { type: "object", properties: { any: { type: "object", additionalProperties: true } } };
    const text = generateTypes({ components: { schemas: { Open: open, Keeper: keeper } } });
    expect(text).toContain("  readonly title: string;\n  readonly [key: string]: unknown;\n}");
    expect(text).toContain("  readonly any?: Readonly<Record<string, unknown>>;");
  });

  it("stops at a schema it does not understand", () => {
    const document = { components: { schemas: { Odd: { type: "object", properties: { x: { type: "object" } } } } } };
    expect(() => generateTypes(document)).toThrow("Odd.x");
  });
});
