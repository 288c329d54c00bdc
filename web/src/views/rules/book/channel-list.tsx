// Channels of alerts: what each delivered, what waits, what fails and until when it is tried again.

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
        None. Webhooks, Slack, e-mail and Alertmanager are set up under <code>[alerts.channels.NAME]</code> in the
        settings.
      </p>
    );
  }
  return (
    <>
      {unposted > 0 && (
        <p role="alert" className={styles.problem}>
          {formatPlural(unposted, "alert")} could not be stored yet: the disk takes no more.
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
                  {" · tried again "}
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
  return `${formatPlural(waiting_turns, "turn")} being gathered`;
}

function Health({ channel }: { channel: ChannelAnswer }) {
  const [tone, words, tip] = healthOf(channel);
  return (
    <span>
      <Tag tone={tone} tip={tip}>
        {words}
      </Tag>
    </span>
  );
}

export function healthOf(
  channel: Pick<ChannelAnswer, "is_configured" | "last_error" | "is_lasting">,
): readonly [Tone, string, string] {
  if (!channel.is_configured)
    return ["warn", "not configured", "It is no longer in the settings; what waits for it waits on"];
  if (channel.last_error === null) return ["ok", "works", "The last message was accepted"];
  if (channel.is_lasting)
    return ["bad", "fails", "It will not mend by itself: the settings or the other side must change"];
  return ["warn", "retrying", "The other side cannot be reached at the moment; nothing is lost"];
}
