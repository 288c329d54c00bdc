// Details of a node or source that breaks rules: its faults, when they lasted, and mutes.

import type { ReactNode } from "react";
import { useNode, useSources } from "../../../data/queries.ts";
import { FaultList, TurnList } from "../../../parts/faults/fault-list.tsx";
import { Card, Panel, PanelHead } from "../../../parts/panel/panel.tsx";
import { openView, select } from "../../../state/changes.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import { Button } from "../../../widgets/button.tsx";
import { Frame } from "../../../widgets/frame.tsx";
import { Tag } from "../../../widgets/tag.tsx";
import { useEscape } from "../../../widgets/use-escape.ts";
import styles from "./details.module.css";
import { MuteCard } from "./mute-card.tsx";

interface NodeFaultsProps {
  readonly node: string;
  /** The rule of the selected violation. */
  readonly rule: string | null;
}

export function NodeFaults({ node, rule }: NodeFaultsProps) {
  const detail = useNode(node);
  const change = useChangeScreen();
  const shownRule = rule ?? detail.value?.faults[0]?.rule ?? null;
  return (
    <Hardware
      kind="Node"
      name={node}
      tag={detail.value && <Tag>{detail.value.node.state}</Tag>}
      detail={detail.value?.node.reason}
    >
      <div className={styles.links}>
        <Button onClick={() => change(openView("overview"))}>Show in the overview</Button>
      </div>
      <Frame source={detail} what="the node">
        {(value) => (
          <>
            <Card title="Faults in the last 30 days">
              {value.faults.length === 0 ? <p>None.</p> : <FaultList faults={value.faults} namesUnits />}
            </Card>
            {value.turns.length > 0 && (
              <Card title="In and out of service">
                <TurnList turns={value.turns} />
              </Card>
            )}
          </>
        )}
      </Frame>
      {shownRule !== null && <MuteCard key={shownRule} workload={`node:${node}`} rule={shownRule} />}
    </Hardware>
  );
}

export function SourceFaults({ source, rule }: { source: string; rule: string | null }) {
  const sources = useSources(true);
  return (
    <Hardware kind="Source" name={source}>
      <Frame source={sources} what="sources">
        {({ groups }) => (
          <Card title="Failures">
            {groups
              .filter(({ kind }) => kind === source)
              .flatMap(({ failures }) => failures)
              .map((failure) => (
                <p key={failure.source}>
                  <b>{failure.source}</b> {failure.message}
                </p>
              ))}
          </Card>
        )}
      </Frame>
      {rule !== null && <MuteCard key={rule} workload={`source:${source}`} rule={rule} />}
    </Hardware>
  );
}

interface HardwareProps {
  readonly kind: string;
  readonly name: string;
  readonly tag?: ReactNode;
  readonly detail?: ReactNode;
  readonly children: ReactNode;
}

function Hardware({ kind, name, tag, detail, children }: HardwareProps) {
  const change = useChangeScreen();
  useEscape(() => change(select(null)));
  return (
    <Panel key={name}>
      <PanelHead kind={kind} title={name} tag={tag} detail={detail} />
      {children}
    </Panel>
  );
}
