// Lists the texts that people read on the page, as `xgettext` does: they stay where they are used, and one file shows all of
// them for review and, later, translation. Whether a literal is such a text follows from its position (a child of an element,
// an argument of `querySelector`), then from the names that it is given (`label`, `className`), and last from its look.

import { type ESTree, parseSync } from "vite";

type Node = ESTree.Node;
type Verdict = "text" | "code" | "continue" | "stop";

export const HEADER = `# Every text that people read on the page, for review and translation. Written by \`npm run codegen\`; do not edit.
# The texts are in the sources: find one there, change it, run \`npm run codegen\` again. \`npm run check\` fails if this file is stale.
# Grouped by file, in the order of the file. {name}: a value that is filled in. <b>…</b>: an element within a sentence.
# Texts that the server sends (findings, names of rules, errors) are in its sources, not here.
`;

/** Attributes, properties, variables and functions with these names hold texts, even if it is one lowercase word. */
const TEXT_NAMES = new RegExp(
  [
    /^(alt|placeholder|aria-(label|description|roledescription|valuetext)|data-tip)$/,
    /(label|title|text|heading|caption|hint|note|tip|message|description|word|phrase|noun|legend|question|reason)s?$/i,
    /^(describe|explain|announce)[A-Z]/,
  ]
    .map(({ source }) => source)
    .join("|"),
  "i",
);

/** These never do: styles, addresses, keys, names of elements and events. */
const CODE_NAMES = new RegExp(
  [
    /^(className|style|d|viewBox|points|transform|font|href|src|rel|id|key|htmlFor|type|kind|role|queryKey|accept|cursor)$/,
    /^(data-(?!tip$).*|aria-(controls|labelledby|describedby|haspopup|current|live|sort|orientation|keyshortcuts))$/,
    /(Id|Key|Class|Style|Url|Path|Selector|Columns|Font|Color|Shader)s?$/,
  ]
    .map(({ source }) => source)
    .join("|"),
);

/** What these functions are given is read by programs. */
const CODE_CALLS = new RegExp(
  [
    /^(querySelector(All)?|getElementById|closest|matches|matchMedia|(add|remove)EventListener|createElement(NS)?)$/,
    /^(get|set|remove)(Item|Attribute|Property|PropertyValue|Context)$/,
    /^(get|has|set|append|delete|startsWith|endsWith|includes|indexOf|split|replace|replaceAll|test|RegExp|URL|classNames)$/,
  ]
    .map(({ source }) => source)
    .join("|"),
);

/** Elements within a sentence: listed as a part of it. */
const INLINE_ELEMENTS = new Set(["a", "abbr", "b", "code", "em", "i", "kbd", "span", "strong", "sub", "sup", "time"]);

/** Two words, or one that begins with a capital letter. */
const LOOKS_LIKE_TEXT = /\p{L}{2,}[,:;.!?…)”’]* [(“‘]?\p{L}|^\p{Lu}\p{Ll}+[\p{L}-]*[.:…?!]?$/u;
const LETTER = /\p{L}/u;

/** Markup, paths of SVG, programs for the GPU, CSS. */
const LOOKS_LIKE_CODE = /^[<[]|="|\{\s|^M\{|gradient\(|sans-serif/;

/** What people read of a page before its script runs. */
const HTML_TEXTS = /<title>([^<]+)|<noscript>([^<]+)|name="description" content="([^"]+)/g;

/** The file of all texts, from the sources by path. */
export function writeStrings(sources: Readonly<Record<string, string>>): string {
  const groups = Object.keys(sources)
    .sort()
    .map((path) => ({ path, texts: extractStrings(path, sources[path] ?? "") }))
    .filter(({ texts }) => texts.length > 0)
    .map(({ path, texts }) => `${path}\n${texts.map((text) => `  ${text}\n`).join("")}`);
  return [HEADER, ...groups].join("\n");
}

/** The texts of one source file, each once, in the order of the file. */
export function extractStrings(path: string, source: string): readonly string[] {
  if (path.endsWith(".html")) return [...source.matchAll(HTML_TEXTS)].map(([, ...texts]) => texts.join(""));
  const { program, errors } = parseSync(path, source);
  if (errors[0]) throw new Error(`${path}: ${errors[0].message}`);
  const texts = new Set<string>();
  visit(program, [], (text) => {
    const line = text.replace(/\s+/g, " ").trim();
    if (LETTER.test(withoutPlaceholders(line))) texts.add(line);
  });
  return [...texts];
}

function visit(node: Node, ancestors: readonly Node[], add: (text: string) => void): void {
  const text = readText(node, ancestors);
  if (text !== null) add(text);
  const path = [...ancestors, node];
  const isRead = text !== null || isInlineElement(node);
  for (const child of listChildren(node)) {
    if (child.type === "JSXText" && isRead) continue;
    visit(child, path, add);
  }
}

/** The text that a node holds, with {name} for values that are filled in; null: none. */
function readText(node: Node, ancestors: readonly Node[]): string | null {
  switch (node.type) {
    case "JSXElement":
    case "JSXFragment": {
      const isPart = isInlineElement(node) && ancestors.some((parent) => hasText(parent)) && hasText(ancestors.at(-1));
      return hasText(node) && !isPart ? node.children.map(writeChild).join("") : null;
    }
    case "Literal":
      return typeof node.value === "string" && isText(node.value, node, ancestors) ? node.value : null;
    case "TemplateLiteral": {
      const text = writeTemplate(node);
      return isText(text, node, ancestors) ? text : null;
    }
    default:
      return null;
  }
}

function isText(text: string, node: Node, ancestors: readonly Node[]): boolean {
  if (LOOKS_LIKE_CODE.test(text)) return false;
  let child = node;
  for (const parent of ancestors.toReversed()) {
    const verdict = judge(parent, child);
    if (verdict === "text" || verdict === "code") return verdict === "text";
    if (verdict === "stop") break;
    child = parent;
  }
  return LOOKS_LIKE_TEXT.test(withoutPlaceholders(text));
}

/** What the place of a value within its parent says about it. */
function judge(parent: Node, child: Node): Verdict {
  switch (parent.type) {
    case "JSXElement":
    case "JSXFragment":
      return "text";
    case "JSXAttribute":
      return judgeName(parent.name.type === "JSXIdentifier" ? parent.name.name : "", "stop");
    case "Property":
    case "PropertyDefinition":
      return child === parent.key ? "code" : judgeName(nameOf(parent.key), "continue");
    case "VariableDeclarator":
      return judgeName(nameOf(parent.id), "stop");
    case "AssignmentExpression":
    case "AssignmentPattern":
      return judgeName(nameOf(parent.left), "stop");
    case "FunctionDeclaration":
      return judgeName(nameOf(parent.id), "stop");
    case "CallExpression":
    case "NewExpression":
      return CODE_CALLS.test(nameOf(parent.callee)) ? "code" : "stop";
    case "BinaryExpression":
      return parent.operator === "+" ? "continue" : "code";
    case "SwitchCase":
      return child === parent.test ? "code" : "continue";
    case "MemberExpression":
    case "TaggedTemplateExpression":
    case "ImportDeclaration":
    case "ImportExpression":
    case "ExportNamedDeclaration":
    case "ExportAllDeclaration":
    case "TSLiteralType":
      return "code";
    case "ExpressionStatement":
    case "VariableDeclaration":
    case "Program":
      return "stop";
    default:
      return "continue";
  }
}

function judgeName(name: string, otherwise: Verdict): Verdict {
  if (CODE_NAMES.test(name)) return "code";
  return TEXT_NAMES.test(name) ? "text" : otherwise;
}

/** A part of a sentence of elements. */
function writeChild(child: ESTree.JSXChild): string {
  switch (child.type) {
    case "JSXText":
      return child.value;
    case "JSXExpressionContainer":
      if (child.expression.type === "JSXEmptyExpression") return "";
      if (child.expression.type === "Literal") return String(child.expression.value);
      return writePlaceholder(child.expression);
    case "JSXElement": {
      const name = nameOf(child.openingElement.name);
      if (!isInlineElement(child)) return `{${name}}`;
      const text = child.children.map(writeChild).join("");
      return text.trim() === "" ? "" : `<${name}>${text}</${name}>`;
    }
    default:
      return "";
  }
}

function writeTemplate({ quasis, expressions }: ESTree.TemplateLiteral): string {
  return quasis
    .map(({ value }, index) => {
      const expression = expressions[index];
      return `${value.cooked ?? value.raw}${expression ? writePlaceholder(expression) : ""}`;
    })
    .join("");
}

function writePlaceholder(expression: Node): string {
  return `{${nameOf(expression) || "…"}}`;
}

/** What a reader would call the value of an expression: `count` for `formatCount(row.count)`; "" if nothing is clear. */
function nameOf(node: Node | null | undefined): string {
  switch (node?.type) {
    case "Identifier":
    case "JSXIdentifier":
    case "PrivateIdentifier":
      return node.name;
    case "Literal":
      return String(node.value);
    case "MemberExpression":
      return node.computed ? nameOf(node.object) : nameOf(node.property);
    case "CallExpression":
      return (
        nameOf(node.arguments.find((argument) => argument.type !== "Literal" && nameOf(argument))) ||
        nameOf(node.callee)
      );
    case "BinaryExpression":
      return nameOf(node.left);
    case "NewExpression":
      return nameOf(node.callee);
    case "ChainExpression":
    case "TSAsExpression":
    case "TSNonNullExpression":
      return nameOf(node.expression);
    default:
      return "";
  }
}

function isInlineElement(node: Node): boolean {
  return node.type === "JSXElement" && INLINE_ELEMENTS.has(nameOf(node.openingElement.name));
}

function hasText(node: Node | undefined): boolean {
  if (node?.type !== "JSXElement" && node?.type !== "JSXFragment") return false;
  return node.children.some((child) => child.type === "JSXText" && LETTER.test(child.value));
}

function withoutPlaceholders(text: string): string {
  return text.replace(/\{[^{}]*\}|<\/?\w+>/g, "");
}

function listChildren(node: Node): readonly Node[] {
  return Object.values(node)
    .flat()
    .filter((value): value is Node => typeof value === "object" && value !== null && "type" in value);
}
