// Turns the component schemas of an OpenAPI document into TypeScript interfaces and unions: what the server answers.
// Covers what response models use; a schema it does not understand stops it rather than becoming `unknown`.

export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly title?: string;
  readonly description?: string;
  readonly enum?: readonly (string | number)[];
  readonly const?: string | number;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly items?: Schema | Record<string, never>;
  readonly prefixItems?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
}

export interface OpenApi {
  readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> };
}

const HEADER = `// Generated from openapi.json by \`npm run codegen\`; do not edit.
// The shapes of the server's answers. Times are Unix ms, ratios 0–1, missing is null.
`;

/** FastAPI's own description of a rejected request; our error shape replaces it. */
const LEFT_OUT = new Set(["HTTPValidationError", "ValidationError"]);

export function generateTypes(document: OpenApi): string {
  const schemas = Object.entries(document.components?.schemas ?? {})
    .filter(([name]) => !LEFT_OUT.has(name))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return [HEADER, ...schemas.map(([name, schema]) => declaration(name, schema))].join("\n");
}

function declaration(name: string, schema: Schema): string {
  const documented = comment(schema.description, "");
  if (schema.enum) return `${documented}export type ${name} = ${literals(schema.enum)};\n`;
  if (!schema.properties) return `${documented}export type ${name} = ${typeOf(schema, name)};\n`;
  const required = new Set(schema.required ?? []);
  const fields = Object.entries(schema.properties).map(([key, field]) => {
    const optional = required.has(key) ? "" : "?";
    return `${comment(field.description, "  ")}  readonly ${key}${optional}: ${typeOf(field, `${name}.${key}`)};`;
  });
  if (schema.additionalProperties === true) fields.push("  readonly [key: string]: unknown;");
  return `${documented}export interface ${name} {\n${fields.join("\n")}\n}\n`;
}

function typeOf(schema: Schema, where: string): string {
  if (schema.$ref) return schema.$ref.slice(schema.$ref.lastIndexOf("/") + 1);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return literals(schema.enum);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return [...new Set(choices.map((choice) => typeOf(choice, where)))].join(" | ");
  switch (schema.type) {
    case "string":
    case "boolean":
    case "null":
      return schema.type;
    case "integer":
    case "number":
      return "number";
    case "array":
      return arrayOf(schema, where);
    case "object":
      return objectOf(schema, where);
    default:
      throw new Error(`${where}: no TypeScript for ${JSON.stringify(schema)}`);
  }
}

function arrayOf(schema: Schema, where: string): string {
  if (schema.prefixItems) return `readonly [${schema.prefixItems.map((item) => typeOf(item, where)).join(", ")}]`;
  const item = typeOf(schema.items ?? {}, where);
  return item.includes(" ") ? `readonly (${item})[]` : `readonly ${item}[]`;
}

function objectOf(schema: Schema, where: string): string {
  const values = schema.additionalProperties;
  if (values === true) return "Readonly<Record<string, unknown>>"; // said to be free-form, not merely left open
  if (typeof values !== "object") throw new Error(`${where}: an object without a name or a type of its values`);
  return `Readonly<Record<string, ${typeOf(values, where)}>>`;
}

function literals(values: readonly (string | number)[]): string {
  return values.map((value) => JSON.stringify(value)).join(" | ");
}

function comment(text: string | undefined, indent: string): string {
  return text
    ? `${indent}/** ${text.replaceAll("``", "`").replace(/\s+/g, " ").replaceAll("*/", "* /").trim()} */\n`
    : "";
}
