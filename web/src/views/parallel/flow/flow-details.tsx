// Details of a node of the execution flow: its operators, tensor splits, duration and neighbors.

import type { FlowAnswer, FlowModule, FlowNode } from "../../../api/generated.ts";
import { formatCount } from "../../../base/format.ts";
import { Button, IconButton } from "../../../widgets/button.tsx";
import { type Fact, Facts } from "../../../widgets/facts.tsx";
import { formatNs } from "../graph/axis.ts";
import styles from "./flow.module.css";
import { MARK_TITLES } from "./looks.ts";

interface FlowDetailsProps {
  readonly flow: FlowAnswer;
  readonly node: FlowNode;
  readonly at: number;
  onOpen(node: FlowNode): void;
  onCloseNamespace(namespace: number | null): void;
  onSelect(node: number): void;
  onShow(node: FlowNode): void;
  onClose(): void;
}

const MAX_NEIGHBORS = 6;

export function FlowDetails(props: FlowDetailsProps) {
  const { flow, node, at, onOpen, onCloseNamespace, onSelect, onShow, onClose } = props;
  const parent = flow.namespaces.find(({ namespace }) => namespace === node.parent);
  return (
    <aside className={styles.details} aria-label="Selected node">
      <header>
        <h3>
          {node.label}
          {node.count > 1 ? ` ×${node.count}` : ""}
        </h3>
        <IconButton icon="close" label="Close details" onClick={onClose} />
      </header>
      <p>{node.namespace || "top level"}</p>
      <div className={styles.actions}>
        {node.opens !== null && (
          <Button look="primary" onClick={() => onOpen(node)}>
            {node.count > 1 ? "Unstack" : "Expand"}
          </Button>
        )}
        {parent && <Button onClick={() => onCloseNamespace(node.parent)}>Collapse {lastOf(parent.path)}</Button>}
        {node.start_ns !== null && <Button onClick={() => onShow(node)}>Show in graph</Button>}
      </div>
      <Facts facts={listFacts(flow, node)} />
      {node.module && <ModuleFacts module={node.module} />}
      <Neighbors title="Inputs from" nodes={neighbors(flow, at, "source")} flow={flow} onSelect={onSelect} />
      <Neighbors title="Outputs to" nodes={neighbors(flow, at, "target")} flow={flow} onSelect={onSelect} />
    </aside>
  );
}

function listFacts(flow: FlowAnswer, node: FlowNode): readonly Fact[] {
  const { stage } = flow.blocks[node.block] ?? { stage: null };
  const types = Object.entries(node.types).map(([type, count]) => (count > 1 ? `${type} ×${count}` : type));
  const splits = node.shards?.map((shard) => shard.join(" × ")).filter(Boolean) ?? [];
  return [
    { name: "Stage", value: stage },
    { name: "Operator", value: node.name },
    { name: "Operators", value: node.operators > 1 ? formatCount(node.operators) : null },
    { name: "Types", value: types.join(", ") },
    {
      name: "Strategy",
      value:
        node.marks.map(({ mark, count }) => `${MARK_TITLES[mark]}${count > 1 ? ` ×${count}` : ""}`).join(", ") || null,
    },
    { name: "Output", value: node.shape },
    { name: "Data type", value: node.data_type },
    { name: "Input split", value: splits.length > 0 ? splits.join(", ") : null },
    { name: "Time", value: node.duration_ns === null ? null : formatNs(node.duration_ns) },
  ];
}

/** The captured module that the node is, or belongs to. */
function ModuleFacts({ module }: { module: FlowModule }) {
  const tensors = [...module.inputs, ...module.outputs, ...module.parameters];
  return (
    <section aria-label="Module">
      <h2>
        {module.class_name} <small>{module.path || "the model"}</small>
      </h2>
      <ul className={styles.tensors}>
        {tensors.map(({ name, shape, splits, placement }, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: several inputs have one name
          <li key={at}>
            <b>{name}</b> {shape.join(" × ")}
            {splits?.some((parts) => parts > 1) && <em> split {splits.join(" × ")}</em>}
            {placement && <small> {placement}</small>}
          </li>
        ))}
      </ul>
    </section>
  );
}

function neighbors({ edges }: FlowAnswer, at: number, end: "source" | "target"): readonly number[] {
  const other = end === "source" ? "target" : "source";
  return [...new Set(edges.filter((edge) => edge[other] === at).map((edge) => edge[end]))];
}

interface NeighborsProps {
  readonly title: string;
  readonly nodes: readonly number[];
  readonly flow: FlowAnswer;
  onSelect(node: number): void;
}

function Neighbors({ title, nodes, flow, onSelect }: NeighborsProps) {
  if (nodes.length === 0) return null;
  return (
    <section>
      <h2>{title}</h2>
      <ul className={styles.open}>
        {nodes.slice(0, MAX_NEIGHBORS).map((at) => (
          <li key={at}>
            <button type="button" onClick={() => onSelect(at)}>
              {flow.nodes[at]?.label}
            </button>
          </li>
        ))}
        {nodes.length > MAX_NEIGHBORS && <li>and {nodes.length - MAX_NEIGHBORS} more</li>}
      </ul>
    </section>
  );
}

function lastOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
