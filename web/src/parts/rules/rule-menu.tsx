// What can be done with one rule.

import * as Menu from "@radix-ui/react-dropdown-menu";
import type { ReactNode } from "react";
import type { RuleAnswer } from "../../api/generated.ts";
import { IconButton } from "../../widgets/button.tsx";
import { Icon } from "../../widgets/icon.tsx";
import { OWN_COLORS } from "./rule-colors.ts";
import styles from "./rule-menu.module.css";
import type { RuleChanges } from "./use-rule-changes.ts";

export interface RuleDoing {
  readonly changes: RuleChanges;
  edit(rule: RuleAnswer): void;
  /** Shows only the units that break it. */
  filter(key: string): void;
  /** Absent where there is no page of rules. */
  readonly openPage?: ((key: string) => void) | undefined;
}

export function RuleMenu({ rule, doing }: { rule: RuleAnswer; doing: RuleDoing }) {
  const { changes, edit, filter, openPage } = doing;
  const { key, is_enabled, is_shipped, is_changed } = rule;
  return (
    <Menu.Root modal={false}>
      <Menu.Trigger asChild>
        <IconButton icon="more" label={`More for ${rule.name}`} className={styles.more} />
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Content className={styles.menu} align="end" sideOffset={6} collisionPadding={8}>
          <Item onSelect={() => edit(rule)}>Edit …</Item>
          <Item onSelect={() => filter(key)}>Show only its GPUs</Item>
          {openPage && <Item onSelect={() => openPage(key)}>Open in the rules page</Item>}
          <Menu.Separator className={styles.separator} />
          {is_enabled && (
            <>
              <Item hint="Alt ←" onSelect={() => changes.move(key, -1)}>
                Move left
              </Item>
              <Item hint="Alt →" onSelect={() => changes.move(key, 1)}>
                Move right
              </Item>
            </>
          )}
          <Colors rule={rule} changes={changes} />
          <Item onSelect={() => changes.setEnabled(rule, !is_enabled)}>{is_enabled ? "Switch off" : "Switch on"}</Item>
          {(!is_shipped || is_changed) && (
            <>
              <Menu.Separator className={styles.separator} />
              <Item onSelect={() => changes.remove(rule)}>{is_shipped ? "Reset to what it was" : "Delete"}</Item>
            </>
          )}
        </Menu.Content>
      </Menu.Portal>
    </Menu.Root>
  );
}

function Item({ children, hint, onSelect }: { children: ReactNode; hint?: string; onSelect: () => void }) {
  return (
    <Menu.Item className={styles.item} onSelect={onSelect}>
      <span>{children}</span>
      {hint && <small>{hint}</small>}
    </Menu.Item>
  );
}

function Colors({ rule, changes }: { rule: RuleAnswer; changes: RuleChanges }) {
  return (
    <Menu.Sub>
      <Menu.SubTrigger className={styles.item}>
        <span>Color</span>
        <small>▸</small>
      </Menu.SubTrigger>
      <Menu.Portal>
        <Menu.SubContent className={styles.menu} sideOffset={4} collisionPadding={8}>
          <Menu.RadioGroup
            value={rule.color ?? ""}
            onValueChange={(color) => changes.setColor(rule, color === "" ? null : color)}
          >
            <Choice value="" title="By severity" />
            {OWN_COLORS.map(({ value, title }) => (
              <Choice key={value} value={value} title={title} />
            ))}
          </Menu.RadioGroup>
        </Menu.SubContent>
      </Menu.Portal>
    </Menu.Sub>
  );
}

function Choice({ value, title }: { value: string; title: string }) {
  return (
    <Menu.RadioItem value={value} className={styles.item}>
      <i className={styles.color} style={value === "" ? undefined : { background: value }} />
      <span>{title}</span>
      <Menu.ItemIndicator>
        <Icon name="check" size={12} />
      </Menu.ItemIndicator>
    </Menu.RadioItem>
  );
}
