// Alert channels: messages delivered and waiting, the last error and the next retry.

import type { AlertState, ChannelAnswer } from "../../../api/generated.ts";
import { formatPlural } from "../../../base/format.ts";
import { useAlerts } from "../../../data/violations.ts";
import { Frame } from "../../../widgets/frame.tsx";
import { RelativeTime } from "../../../widgets/relative-time.tsx";
import { Tag, type Tone } from "../../../widgets/tag.tsx";
import styles from "./book.module.css";

export function ChannelList() {
  return (
    <section aria-label="Alert channels">
      <h2>Alert channels</h2>
      <Frame source={useAlerts()} what="alert channels">
        {(state) => <Channels state={state} />}
      </Frame>
    </section>
  );
}

function Channels({ state: { channels, unposted } }: { state: AlertState }) {
  if (channels.length === 0) {
    return (
      <p className={styles.nothing}>
        No channels. Configure webhooks, Slack, e-mail, Alertmanager or Apprise services under{" "}
        <code>[alerts.channels.NAME]</code> in the settings.
      </p>
    );
  }
  return (
    <>
      {unposted > 0 && (
        <p role="alert" className={styles.problem}>
          {formatPlural(unposted, "alert")} not stored yet: writing to disk fails.
        </p>
      )}
      <ul className={styles.list}>
        {channels.map((channel) => (
          <li key={channel.name}>
            <b>{channel.name}</b>
            <span>{channel.kind}</span>
            <Health channel={channel} />
            <span className={styles.wide} title={channel.last_error ?? undefined}>
              {channel.last_error}
            </span>
            <small>
              {channel.waiting_turns + channel.waiting > 0 && `${describeWaiting(channel)} · `}
              {formatPlural(channel.delivered, "message")} delivered
              {channel.delivered_at !== null && (
                <>
                  , last <RelativeTime at={channel.delivered_at} />
                </>
              )}
              {channel.last_error && channel.next_attempt_at !== null && (
                <>
                  {" · next attempt "}
                  <RelativeTime at={channel.next_attempt_at} />
                </>
              )}
            </small>
          </li>
        ))}
      </ul>
    </>
  );
}

function describeWaiting({ waiting, waiting_turns }: ChannelAnswer): string {
  if (waiting > 0) return `${formatPlural(waiting, "message")} waiting`;
  return `${formatPlural(waiting_turns, "turn")} being grouped`;
}

function Health({ channel }: { channel: ChannelAnswer }) {
  const [tone, words, tip] = describeHealth(channel);
  return (
    <span>
      <Tag tone={tone} tip={tip}>
        {words}
      </Tag>
    </span>
  );
}

export function describeHealth(
  channel: Pick<ChannelAnswer, "is_configured" | "last_error" | "is_lasting">,
): readonly [Tone, string, string] {
  if (!channel.is_configured) return ["warn", "not configured", "No longer in the settings; its messages stay queued"];
  if (channel.last_error === null) return ["ok", "works", "The last message was accepted"];
  if (channel.is_lasting) return ["bad", "fails", "Retrying does not help: fix the settings or the receiver"];
  return ["warn", "retrying", "The receiver cannot be reached; messages are kept and sent later"];
}
