// Details of a span: time, location, waiting, and related spans.

import type { CollectiveMember, RelatedSpan, SpanAnswer } from "../../../api/generated.ts";
import { formatBytes, formatQuantity, formatRatio } from "../../../base/format.ts";
import { useSpan } from "../../../data/traces.ts";
import { Card } from "../../../parts/panel/panel.tsx";
import { Button } from "../../../widgets/button.tsx";
import { type Fact, Facts } from "../../../widgets/facts.tsx";
import { Frame } from "../../../widgets/frame.tsx";
import { Tag } from "../../../widgets/tag.tsx";
import { formatNs } from "../graph/axis.ts";
import { KIND_COLORS, KIND_TITLES, kindOf } from "../graph/kinds.ts";
import styles from "./details.module.css";

interface SpanDetailsProps {
  readonly trace: string;
  readonly span: number | null;
  readonly originNs: number;
  onOpen(span: RelatedSpan | CollectiveMember): void;
  onZoom(span: SpanAnswer): void;
  /** Shows its operator in the execution flow. */
  onFlow(): void;
}

export function SpanDetails({ trace, span, originNs, onOpen, onZoom, onFlow }: SpanDetailsProps) {
  const answer = useSpan(trace, span);
  if (span === null) {
    return (
      <p className={styles.none}>
        Select a span or a band to see its details, which rank it waited for, and which rank arrived last. With the
        keyboard: focus the graph, then press period or comma.
      </p>
    );
  }
  return (
    <Frame source={answer} what="the span">
      {(value) => (
        <Content answer={value} originNs={originNs} onOpen={onOpen} onZoom={() => onZoom(value)} onFlow={onFlow} />
      )}
    </Frame>
  );
}

interface ContentProps {
  readonly answer: SpanAnswer;
  readonly originNs: number;
  onOpen(span: RelatedSpan | CollectiveMember): void;
  onZoom(): void;
  onFlow(): void;
}

function Content({ answer, originNs, onOpen, onZoom, onFlow }: ContentProps) {
  const kind = kindOf(answer.span_class, answer.phase);
  return (
    <div className={styles.span} data-span={answer.span}>
      <header>
        <div>
          <small>
            <i data-swatch={true} style={{ background: KIND_COLORS[kind] }} /> {KIND_TITLES[kind]}
          </small>
          {answer.is_outlier && (
            <Tag tone="warn" tip={`Median of spans with this name: ${formatNs(answer.median_ns)}`}>
              {(computeLength(answer) / Math.max(1, answer.median_ns)).toFixed(1)}× the median
            </Tag>
          )}
        </div>
        <h3>{answer.name}</h3>
        <p className={styles.actions}>
          <Button onClick={onZoom}>Zoom to span</Button>
          <Button data-tip="Its operator in the execution flow, and the module around it" onClick={onFlow}>
            Show in flow
          </Button>
        </p>
      </header>
      <Card label="Facts">
        <Facts facts={listFacts(answer, originNs)} />
      </Card>
      {answer.members.length > 0 && <Members answer={answer} onOpen={onOpen} />}
      <Related title="Other end of the message" spans={[answer.message]} originNs={originNs} onOpen={onOpen} />
      <Related title="Same span on other ranks" spans={answer.peers} originNs={originNs} onOpen={onOpen} />
      <Related title="Launched by" spans={[answer.launch]} originNs={originNs} onOpen={onOpen} />
      <Related title="Launched" spans={answer.launched} originNs={originNs} onOpen={onOpen} />
      <Related title="Previous and next" spans={[answer.before, answer.after]} originNs={originNs} onOpen={onOpen} />
    </div>
  );
}

function computeLength({ arrive_ns, end_ns }: SpanAnswer): number {
  return end_ns - arrive_ns;
}

function listFacts(answer: SpanAnswer, originNs: number): readonly Fact[] {
  const length = computeLength(answer);
  const location = [answer.stage === null ? null : `stage ${answer.stage}`, `rank ${answer.rank}`, answer.lane];
  return [
    { name: "Duration", value: `${formatNs(length)}; median of this name ${formatNs(answer.median_ns)}` },
    { name: "Start", value: `${formatNs(answer.arrive_ns - originNs)} after the start of the step` },
    { name: "Location", value: location.filter(Boolean).join(" · ") },
    { name: "Step", value: answer.step },
    { name: "Micro-batch", value: answer.micro_batch },
    { name: "Phase", value: answer.phase },
    { name: "Module", value: answer.namespace },
    {
      name: "Wait",
      value:
        answer.wait_ns === null
          ? null
          : `${formatNs(answer.wait_ns)}, ${formatRatio(answer.wait_ns / Math.max(1, length))}`,
    },
    {
      name: "On critical path",
      value: answer.critical_ns > 0 ? formatRatio(answer.critical_ns / Math.max(1, length)) : "no",
    },
    { name: "Slack", value: answer.slack_ns === null ? null : formatNs(answer.slack_ns) },
    { name: "Collective", value: answer.collective },
    { name: "Process group", value: answer.process_group },
    { name: "Bytes", value: answer.bytes === null ? null : formatBytes(answer.bytes) },
    {
      name: "Bandwidth",
      value:
        answer.bandwidth_bytes_per_s === null ? null : formatQuantity(answer.bandwidth_bytes_per_s, "bytes_per_second"),
    },
    { name: "FLOPs", value: answer.flops === null ? null : answer.flops.toExponential(2) },
  ];
}

/** Members of a collective on one time scale: a bar from each rank's arrival over its wait to the end. */
function Members({ answer, onOpen }: { answer: SpanAnswer; onOpen(member: CollectiveMember): void }) {
  const { members } = answer;
  const from = Math.min(...members.map(({ arrive_ns }) => arrive_ns));
  const length = Math.max(1, Math.max(...members.map(({ end_ns }) => end_ns)) - from);
  const percent = (ns: number) => `${(ns / length) * 100}%`;
  return (
    <Card title={`${members.length} members, ${formatNs(length)}`}>
      <ul className={styles.members}>
        {members.map((member) => (
          <li key={member.span}>
            <button
              type="button"
              data-row={true}
              aria-current={member.span === answer.span || undefined}
              data-tip={`arrives after ${formatNs(member.arrive_ns - from)}, waits ${formatNs(member.wait_ns)}, transfers ${formatNs(member.transfer_ns)}`}
              onClick={() => onOpen(member)}
            >
              <span>
                rank {member.rank}
                {member.is_last && <em> last</em>}
              </span>
              <span className={styles.track}>
                <i
                  style={{
                    left: percent(member.arrive_ns - from),
                    width: percent(member.wait_ns),
                    background: KIND_COLORS.waiting,
                  }}
                  data-wait={true}
                />
                <i
                  style={{
                    left: percent(member.arrive_ns - from + member.wait_ns),
                    width: percent(Math.max(0, member.end_ns - member.arrive_ns - member.wait_ns)),
                    background: KIND_COLORS.communication,
                  }}
                />
              </span>
              <small>{formatNs(member.wait_ns)}</small>
            </button>
          </li>
        ))}
      </ul>
    </Card>
  );
}

interface RelatedProps {
  readonly title: string;
  readonly spans: readonly (RelatedSpan | null)[];
  readonly originNs: number;
  onOpen(span: RelatedSpan): void;
}

const MAX_RELATED = 12;

function Related({ title, spans, originNs, onOpen }: RelatedProps) {
  const relatedSpans = spans.filter((span) => span !== null);
  if (relatedSpans.length === 0) return null;
  return (
    <Card title={title}>
      <ul className={styles.related}>
        {relatedSpans.slice(0, MAX_RELATED).map((span) => (
          <li key={span.span}>
            <button type="button" data-row={true} onClick={() => onOpen(span)}>
              <i data-swatch={true} style={{ background: KIND_COLORS[kindOf(span.span_class, null)] }} />
              <span title={span.name}>{span.name}</span>
              <small>
                rank {span.rank} · {formatNs(span.start_ns - originNs)} · {formatNs(span.end_ns - span.start_ns)}
              </small>
            </button>
          </li>
        ))}
      </ul>
      {relatedSpans.length > MAX_RELATED && <p className={styles.more}>and {relatedSpans.length - MAX_RELATED} more</p>}
    </Card>
  );
}
