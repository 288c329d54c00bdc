// The menu of a rule.

import type { ReactElement } from "react";
import type { RuleAnswer } from "../../api/generated.ts";
import { useMay } from "../../data/access.ts";
import { IconButton } from "../../widgets/button.tsx";
import { Menu, MenuChoices, MenuItem, MenuSeparator, SubMenu } from "../../widgets/menu.tsx";
import { OWN_COLORS } from "./rule-colors.ts";
import styles from "./rule-menu.module.css";
import type { RuleChanges } from "./use-rule-changes.ts";

export interface RuleMenuActions {
  readonly changes: RuleChanges;
  edit(rule: RuleAnswer): void;
  /** Shows only the units that break it. */
  filter(key: string): void;
  /** Absent where there is no page of rules. */
  readonly openPage?: ((key: string) => void) | undefined;
}

/** The color by severity is not a color of the rule itself. */
const COLORS = [{ value: "", title: "By severity" }, ...OWN_COLORS].map(({ value, title }) => ({
  value,
  title,
  mark: <i className={styles.color} style={value === "" ? undefined : { background: value }} />,
}));

interface RuleMenuProps {
  readonly rule: RuleAnswer;
  readonly actions: RuleMenuActions;
  /** The button; a "more" icon where none is given. */
  readonly trigger?: ReactElement;
}

export function RuleMenu({ rule, actions, trigger }: RuleMenuProps) {
  const { changes, edit, filter, openPage } = actions;
  const { key } = rule;
  const mayChange = useMay("operator");
  return (
    <Menu trigger={trigger ?? <IconButton icon="more" label={`More for ${rule.name}`} className={styles.more} />}>
      {mayChange && <MenuItem onSelect={() => edit(rule)}>Edit …</MenuItem>}
      <MenuItem onSelect={() => filter(key)}>Show only its GPUs</MenuItem>
      {openPage && <MenuItem onSelect={() => openPage(key)}>Open in Rules</MenuItem>}
      {mayChange && <RuleChangeItems rule={rule} changes={changes} />}
    </Menu>
  );
}

function RuleChangeItems({ rule, changes }: { rule: RuleAnswer; changes: RuleChanges }) {
  const { key, is_enabled, is_shipped, is_changed } = rule;
  return (
    <>
      <MenuSeparator />
      {is_enabled && (
        <>
          <MenuItem hint="Alt ←" onSelect={() => changes.move(key, -1)}>
            Move left
          </MenuItem>
          <MenuItem hint="Alt →" onSelect={() => changes.move(key, 1)}>
            Move right
          </MenuItem>
        </>
      )}
      <SubMenu title="Color">
        <MenuChoices
          value={rule.color ?? ""}
          choices={COLORS}
          onChoose={(color) => changes.setColor(rule, color === "" ? null : color)}
        />
      </SubMenu>
      <MenuItem onSelect={() => changes.setEnabled(rule, !is_enabled)}>{is_enabled ? "Disable" : "Enable"}</MenuItem>
      {(!is_shipped || is_changed) && (
        <>
          <MenuSeparator />
          <MenuItem onSelect={() => changes.remove(rule)}>{is_shipped ? "Reset to default" : "Delete"}</MenuItem>
        </>
      )}
    </>
  );
}
