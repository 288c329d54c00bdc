// The reference page of the layout grammar, written from the code that reads it: docs/reference/layout.md. The types ask for
// a row for every property and every value, so a new one cannot be forgotten here.

import { formatCount } from "../src/base/format.ts";
import { BUILTIN_VIEWS } from "../src/layout/builtin-views.ts";
import {
  type Bins,
  DEFAULT_LAYER,
  DEFAULT_MARK,
  DEFAULT_SORT,
  DEFAULT_VIEW,
  FILTERED_MODES,
  type FilteredMode,
  GROUP_SIZES,
  type GroupSize,
  type GroupSort,
  LAYOUT_KINDS,
  type Layer,
  type LayoutKind,
  type Mark,
  SHOWN_UNITS,
  type ShownUnits,
  SORT_KEYS,
  SORT_ORDERS,
  type SortKey,
  type SortOrder,
  UNIT_ORIGINS,
  type UnitOrigin,
  type UnitSort,
  VIEW_VERSION,
  type View,
} from "../src/layout/grammar.ts";
import { MAX_ASPECT, MAX_BINS, MAX_LAYERS, MAX_LIMIT, MAX_PADDING } from "../src/layout/parse-view.ts";
import { ATTRIBUTES, type Attribute, STATISTICS } from "../src/state/attributes.ts";
import { PLAIN_LOOK } from "../src/state/look.ts";
import { MAX_TITLE, writeDocument } from "../src/state/view-document.ts";

export interface Property {
  readonly values: string;
  /** As JSON; null: must be given. */
  readonly initial: unknown;
  readonly meaning: string;
  /** A value to write, other than the default. */
  readonly example: unknown;
}

type Properties<T> = Readonly<Record<keyof T & string, Property>>;

const code = (text: string) => `\`${text}\``;
const choices = (values: readonly string[]) => values.map((value) => code(JSON.stringify(value))).join(", ");
const count = (value: number) => formatCount(value);

const KINDS: Readonly<Record<LayoutKind, string>> = {
  pack: "each of a fixed aspect ratio, with the least empty space, whatever the order",
  fillX: "side by side along X, all of the same height; never wraps",
  fillY: "one below the other along Y, all of the same width; never wraps",
  listX: "in order along X, wrapping where the space ends",
  listY: "in order along Y, wrapping where the space ends",
};
const SIZES: Readonly<Record<GroupSize, string>> = {
  uniform: "every group as large as its largest sibling",
  count: "every group as large as its units need; a unit is always the same size",
};
const KEYS: Readonly<Record<SortKey, string>> = {
  name: "by name, numbers in names as numbers; of bins by their limits",
  count: "by the number of units",
  value: "by the mean of a number over the group's units",
};
const ORDERS: Readonly<Record<SortOrder, string>> = {
  ascending: "least first",
  descending: "most first",
};
const UNITS: Readonly<Record<ShownUnits, string>> = {
  all: "both",
  gpus: "GPUs and MIG instances that exist",
  requested: "one for each GPU that a waiting workload asks for",
  waiting: "one for each workload that waits for GPUs",
};
const FILTERED: Readonly<Record<FilteredMode, string>> = {
  fade: "stay in their places, hardly seen",
  vanish: "are gone, and the others are laid out without them",
};
const ORIGINS: Readonly<Record<UnitOrigin, string>> = {
  top: "the first row lies at the top",
  bottom: "it lies at the bottom: bars stand on it",
};

export const VIEW: Properties<View> = {
  units: {
    values: choices(SHOWN_UNITS),
    initial: DEFAULT_VIEW.units,
    meaning: "Which units are drawn.",
    example: "gpus",
  },
  filtered: {
    values: choices(FILTERED_MODES),
    initial: DEFAULT_VIEW.filtered,
    meaning: "What becomes of units that a filter leaves out.",
    example: "vanish",
  },
  layers: {
    values: `a list of [layers](#layer), at most ${MAX_LAYERS}`,
    initial: DEFAULT_VIEW.layers,
    meaning: "How units are grouped, from the outermost to the innermost. None: all units in one place.",
    example: [{ by: "partition" }, { by: "node" }],
  },
  mark: {
    values: "a [mark](#mark)",
    initial: {},
    meaning: "How units lie in their innermost group, and how they are colored.",
    example: { color: "gpu_util_ratio" },
  },
};

export const LAYER: Properties<Layer> = {
  by: {
    values: "the name of an [attribute](#attributes), or [bins](#bins)",
    initial: null,
    meaning: "What units of a group have in common. A number by its name alone: each value is a group.",
    example: "partition",
  },
  layout: {
    values: choices(LAYOUT_KINDS),
    initial: DEFAULT_LAYER.layout,
    meaning: "How the groups lie in the group around them.",
    example: "listX",
  },
  size: {
    values: choices(GROUP_SIZES),
    initial: DEFAULT_LAYER.size,
    meaning: "Sizes of groups relative to each other.",
    example: "uniform",
  },
  sort: {
    values: "a [sort](#sort)",
    initial: {},
    meaning: "Their order. Groups without a name or value are last either way. Packing may change it.",
    example: { by: "count", order: "descending" },
  },
  label: {
    values: "`true`, `false`",
    initial: DEFAULT_LAYER.label,
    meaning: "Whether room is kept for the name above each group.",
    example: false,
  },
  padding: {
    values: `0 to ${MAX_PADDING}, or \`null\``,
    initial: DEFAULT_LAYER.padding,
    meaning: "Inside a group's border and between siblings, in sides of a unit; null: fitting the groups' size.",
    example: 0.5,
  },
  aspect: {
    values: `${1 / MAX_ASPECT} to ${MAX_ASPECT}`,
    initial: DEFAULT_LAYER.aspect,
    meaning: "Width over height that a packed group aims at.",
    example: 1.5,
  },
  limit: {
    values: `1 to ${count(MAX_LIMIT)}, or \`null\``,
    initial: DEFAULT_LAYER.limit,
    meaning:
      "In sides of a unit: the height of `fillX`, the width of `fillY`, the length at which a list wraps; null: from the space.",
    example: 40,
  },
};

export const SORT: Properties<GroupSort> = {
  by: {
    values: choices(SORT_KEYS),
    initial: DEFAULT_SORT.by,
    meaning: "By what groups are ordered.",
    example: "count",
  },
  order: {
    values: choices(SORT_ORDERS),
    initial: DEFAULT_SORT.order,
    meaning: "Which end comes first.",
    example: "descending",
  },
  of: {
    values: "the name of a number",
    initial: DEFAULT_SORT.of,
    meaning: 'With `"by": "value"`: whose mean over a group\'s units is its value.',
    example: "wait_s",
  },
};

export const BINS: Properties<Bins> = {
  metric: {
    values: "the name of a number",
    initial: null,
    meaning: "What is cut into bins.",
    example: "gpu_util_ratio",
  },
  bins: {
    values: `1 to ${MAX_BINS}, or a list of rising numbers, fewer than ${MAX_BINS}`,
    initial: 5,
    meaning:
      "The most groups, with limits at round numbers (multiples of 1, 2, 2.5 or 5 × 10ⁿ); or the limits between them, in the unit of the metric.",
    example: [0.2, 0.8],
  },
};

export const MARK: Properties<Mark> = {
  layout: {
    values: choices(LAYOUT_KINDS),
    initial: DEFAULT_MARK.layout,
    meaning:
      "Units are alike, so a fill and a list differ only in their direction: `fillX` and `listY` go down, then right.",
    example: "fillY",
  },
  sort: {
    values: "a [sort of units](#sort-of-units), or `null`",
    initial: DEFAULT_MARK.sort,
    meaning: "Their order; null: as units come, which is by node and index.",
    example: { by: "power_watts", order: "descending" },
  },
  padding: {
    values: `0 to ${MAX_PADDING}`,
    initial: DEFAULT_MARK.padding,
    meaning: "Between units, in sides of a unit.",
    example: 0,
  },
  limit: {
    values: `1 to ${count(MAX_LIMIT)}, or \`null\``,
    initial: DEFAULT_MARK.limit,
    meaning: "Units across: a column of `fillX` and `listY`, a row of `fillY` and `listX`; null: from the space.",
    example: 8,
  },
  from: {
    values: choices(UNIT_ORIGINS),
    initial: DEFAULT_MARK.from,
    meaning: "Where the first row of units lies.",
    example: "bottom",
  },
  color: {
    values: "the name of an [attribute](#attributes), or `null`",
    initial: DEFAULT_MARK.color,
    meaning: "What colors units; null: their state.",
    example: "power_watts:p50",
  },
};

export const UNIT_SORT: Properties<UnitSort> = {
  by: {
    values: "the name of an [attribute](#attributes)",
    initial: null,
    meaning: "By what units are ordered within their group.",
    example: "gpu_util_ratio",
  },
  order: {
    values: choices(SORT_ORDERS),
    initial: DEFAULT_SORT.order,
    meaning: "Which end comes first.",
    example: "descending",
  },
};

const HEAD = `# Layout

How the [overview](../guide/overview.md) arranges units: a view document, which is one JSON object. It nests groups in groups, down to
the units, as the unit visualizations of Park et al. (ATOM, 2018) do. The page writes it into the address (\`layout=\`), exports and imports
it, and the server keeps shared ones under \`/api/v1/views/{name}\`. Written from \`web/src/layout\`.

Whatever has its default may be left out; what means nothing here is left out by the page, which names it in a sentence and draws
the rest. So a document of a newer ClusterScape, or of another site, still opens.`;

export function writeLayoutReference(): string {
  return [
    "<!-- Written by `make docs`; change the code it names, not this file. -->",
    HEAD,
    "\n## View\n",
    table(VIEW),
    `\nBeside these stand \`version\` (${VIEW_VERSION}; raised when an older client could not read a newer document), \`title\` (at most ${MAX_TITLE} characters)`,
    'and `look`, the colors as the address has them, each a list of texts: `"look": {"color_scheme": ["cividis"]}`.',
    "The server asks for `version` and `title`, and takes at most 64 KiB.",
    meanings("units", UNITS),
    meanings("filtered", FILTERED),
    "\n## Layer\n",
    table(LAYER),
    meanings("layout", KINDS),
    meanings("size", SIZES),
    "\n### Bins\n",
    table(BINS),
    "\nBin k holds limit k ≤ value < limit k + 1, the last one its upper limit, too. Units without a value are a group of their own.",
    "\n### Sort\n",
    table(SORT),
    meanings("by", KEYS),
    meanings("order", ORDERS),
    "\n## Mark\n",
    table(MARK),
    meanings("from", ORIGINS),
    "\n### Sort of units\n",
    table(UNIT_SORT),
    "\n## Attributes\n",
    "What can be known of a unit. Names group, sort and color; numbers can also be cut into bins and averaged. A metric may be followed by a statistic",
    `over the life of the workload that holds the unit: ${STATISTICS.map((statistic) => code(`:${statistic}`)).join(", ")}, as in \`gpu_util_ratio:p50\`.`,
    "\n| name | what it is | values |\n|---|---|---|",
    ...ATTRIBUTES.filter(isListed).map(writeAttribute),
    "\n## Built-in views\n",
    "The four figures of the HPC²lusterScape paper; `picture=` in the address names them by their key.",
    ...BUILTIN_VIEWS.map(
      ({ key, title, view, look = PLAIN_LOOK }) =>
        `\n### ${title}\n\n\`${key}\`\n\n\`\`\`json\n${writeJson(writeDocument({ title, view, look }))}\n\`\`\``,
    ),
    "",
  ].join("\n");
}

function table(properties: Readonly<Record<string, Property>>): string {
  const rows = Object.entries(properties).map(([name, { values, initial, meaning, example }]) => {
    const usual =
      initial === null && !values.includes("null") && name !== "of" ? "required" : code(JSON.stringify(initial));
    return `| \`${name}\` | ${values} | ${usual} | ${meaning} | ${code(`${JSON.stringify(name)}: ${spaced(example)}`)} |`;
  });
  return ["| property | values | default | meaning | example |", "|---|---|---|---|---|", ...rows].join("\n");
}

function meanings(property: string, words: Readonly<Record<string, string>>): string {
  const rows = Object.entries(words).map(([value, meaning]) => `| ${code(JSON.stringify(value))} | ${meaning} |`);
  return [`\n| \`${property}\` | |`, "|---|---|", ...rows].join("\n");
}

/** Statistics of metrics are many; one sentence describes them all. */
function isListed(attribute: Attribute): boolean {
  return attribute.kind === "name" || attribute.statistic === null;
}

function writeAttribute(attribute: Attribute): string {
  const { name, title } = attribute;
  if (attribute.kind === "name")
    return `| \`${name}\` | ${title} | ${attribute.values?.map(code).join(", ") ?? "names"} |`;
  const unit = attribute.unit.replaceAll("_", " ");
  return `| \`${name}\` | ${title} | ${unit}${attribute.metric === null ? "" : "; a metric"} |`;
}

/** On one line, with room to read. */
function spaced(value: unknown): string {
  return JSON.stringify(value, null, 1)
    .replaceAll(/\n\s*/g, " ")
    .replaceAll(/([[{]) /g, "$1")
    .replaceAll(/ ([\]}])/g, "$1");
}

/** A layer a line. */
function writeJson(document: Readonly<Record<string, unknown>>): string {
  const fields = Object.entries(document).map(([key, value]) => {
    const text = Array.isArray(value)
      ? `[\n${value.map((layer) => `    ${spaced(layer)}`).join(",\n")}\n  ]`
      : spaced(value);
    return `  ${JSON.stringify(key)}: ${text}`;
  });
  return `{\n${fields.join(",\n")}\n}`;
}
