// One span: when, where, how long, whom it waited for, and what it belongs to.

import type { CollectiveMember, RelatedSpan, SpanAnswer } from "../../../api/generated.ts";
import { formatBytes, formatQuantity, formatRatio } from "../../../base/format.ts";
import { useSpan } from "../../../data/traces.ts";
import { Card } from "../../../parts/panel/panel.tsx";
import { Button } from "../../../widgets/button.tsx";
import { type Fact, Facts } from "../../../widgets/facts.tsx";
import { Frame } from "../../../widgets/frame.tsx";
import { Tag } from "../../../widgets/tag.tsx";
import { sayNs } from "../graph/axis.ts";
import { KIND_COLORS, KIND_TITLES, kindOf } from "../graph/kinds.ts";
import styles from "./details.module.css";

interface SpanDetailsProps {
  readonly trace: string;
  readonly span: number | null;
  readonly originNs: number;
  onOpen(span: RelatedSpan | CollectiveMember): void;
  onZoom(span: SpanAnswer): void;
  /** Its operator in the execution flow. */
  onFlow(): void;
}

export function SpanDetails({ trace, span, originNs, onOpen, onZoom, onFlow }: SpanDetailsProps) {
  const answer = useSpan(trace, span);
  if (span === null) {
    return (
      <p className={styles.none}>
        Click a span or a band: here stands what it is, whom it waited for, and who came last. With keys: focus the
        graph, then period and comma.
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
            <Tag tone="warn" tip={`The median of its name is ${sayNs(answer.median_ns)}`}>
              {(lengthOf(answer) / Math.max(1, answer.median_ns)).toFixed(1)}× as long as usual
            </Tag>
          )}
        </div>
        <h3>{answer.name}</h3>
        <p className={styles.deeds}>
          <Button onClick={onZoom}>Zoom to it</Button>
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
      <Related title="The same on other ranks" spans={answer.peers} originNs={originNs} onOpen={onOpen} />
      <Related title="Launched by" spans={[answer.launch]} originNs={originNs} onOpen={onOpen} />
      <Related title="Launched" spans={answer.launched} originNs={originNs} onOpen={onOpen} />
      <Related title="Before and after it" spans={[answer.before, answer.after]} originNs={originNs} onOpen={onOpen} />
    </div>
  );
}

function lengthOf({ arrive_ns, end_ns }: SpanAnswer): number {
  return end_ns - arrive_ns;
}

function listFacts(answer: SpanAnswer, originNs: number): readonly Fact[] {
  const length = lengthOf(answer);
  const where = [answer.stage === null ? null : `stage ${answer.stage}`, `rank ${answer.rank}`, answer.lane];
  return [
    { name: "takes", value: `${sayNs(length)}; median of its name ${sayNs(answer.median_ns)}` },
    { name: "from", value: `${sayNs(answer.arrive_ns - originNs)} of the step` },
    { name: "where", value: where.filter(Boolean).join(" · ") },
    { name: "step", value: answer.step },
    { name: "micro-batch", value: answer.micro_batch },
    { name: "phase", value: answer.phase },
    { name: "module", value: answer.namespace },
    {
      name: "waits",
      value:
        answer.wait_ns === null
          ? null
          : `${sayNs(answer.wait_ns)}, ${formatRatio(answer.wait_ns / Math.max(1, length))}`,
    },
    {
      name: "on critical path",
      value: answer.critical_ns > 0 ? formatRatio(answer.critical_ns / Math.max(1, length)) : "no",
    },
    { name: "slack", value: answer.slack_ns === null ? null : sayNs(answer.slack_ns) },
    { name: "collective", value: answer.collective },
    { name: "process group", value: answer.process_group },
    { name: "bytes", value: answer.bytes === null ? null : formatBytes(answer.bytes) },
    {
      name: "bandwidth",
      value:
        answer.bandwidth_bytes_per_s === null ? null : formatQuantity(answer.bandwidth_bytes_per_s, "bytes_per_second"),
    },
    { name: "FLOPs", value: answer.flops === null ? null : answer.flops.toExponential(2) },
  ];
}

/** Who came when: a bar from each rank's arrival over its wait to the end, on one scale. The last to come waits for nobody. */
function Members({ answer, onOpen }: { answer: SpanAnswer; onOpen(member: CollectiveMember): void }) {
  const { members } = answer;
  const from = Math.min(...members.map(({ arrive_ns }) => arrive_ns));
  const length = Math.max(1, Math.max(...members.map(({ end_ns }) => end_ns)) - from);
  const percent = (ns: number) => `${(ns / length) * 100}%`;
  return (
    <Card title={`${members.length} members, ${sayNs(length)}`}>
      <ul className={styles.members}>
        {members.map((member) => (
          <li key={member.span}>
            <button
              type="button"
              data-row={true}
              aria-current={member.span === answer.span || undefined}
              data-tip={`arrives after ${sayNs(member.arrive_ns - from)}, waits ${sayNs(member.wait_ns)}, transfers ${sayNs(member.transfer_ns)}`}
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
              <small>{sayNs(member.wait_ns)}</small>
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

const MOST_RELATED = 12;

function Related({ title, spans, originNs, onOpen }: RelatedProps) {
  const known = spans.filter((span) => span !== null);
  if (known.length === 0) return null;
  return (
    <Card title={title}>
      <ul className={styles.related}>
        {known.slice(0, MOST_RELATED).map((span) => (
          <li key={span.span}>
            <button type="button" data-row={true} onClick={() => onOpen(span)}>
              <i data-swatch={true} style={{ background: KIND_COLORS[kindOf(span.span_class, null)] }} />
              <span title={span.name}>{span.name}</span>
              <small>
                rank {span.rank} · {sayNs(span.start_ns - originNs)} · {sayNs(span.end_ns - span.start_ns)}
              </small>
            </button>
          </li>
        ))}
      </ul>
      {known.length > MOST_RELATED && <p className={styles.more}>and {known.length - MOST_RELATED} more</p>}
    </Card>
  );
}
