// What can be done with one view.

import * as Menu from "@radix-ui/react-dropdown-menu";
import type { NamedView } from "../../../data/views.ts";
import { isMine } from "../../../state/picture.ts";
import { IconButton } from "../../../widgets/button.tsx";
import { Icon } from "../../../widgets/icon.tsx";
import styles from "./saved-views.module.css";
import type { Editor } from "./use-editor.ts";
import type { Views } from "./use-views.ts";

interface ViewMenuProps {
  readonly view: NamedView;
  readonly editor: Editor;
  readonly views: Views;
  onRename(): void;
}

export function ViewMenu({ view, editor, views, onRename }: ViewMenuProps) {
  const { picture, document } = view;
  const { library } = editor;
  const isOwn = picture.includes(":");
  return (
    <Menu.Root modal={false}>
      <Menu.Trigger asChild>
        <IconButton icon="more" label={`More for ${document.title}`} className={styles.more} />
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Content className={styles.menu} side="right" align="start" sideOffset={6} collisionPadding={8}>
          <Item onSelect={() => void views.copyLink(view)}>Copy link</Item>
          <Item onSelect={() => void views.copyJson(view)}>Copy JSON</Item>
          <Item onSelect={() => views.exportJson(view)}>Export JSON</Item>
          <Menu.Separator className={styles.separator} />
          <Start isOn={library.ownStart === picture} onToggle={() => views.toggleStartHere(picture)}>
            Start with it here
          </Start>
          {!isMine(picture) && (
            <Start isOn={library.sharedStart === picture} onToggle={() => void views.toggleStartEverybody(picture)}>
              Start with it for everybody
            </Start>
          )}
          {isOwn && (
            <>
              <Menu.Separator className={styles.separator} />
              <Item onSelect={onRename}>Rename</Item>
              <Item onSelect={() => void views.overwrite(view)}>Replace by what is shown</Item>
              <Item onSelect={() => void views.remove(view)}>Delete</Item>
            </>
          )}
        </Menu.Content>
      </Menu.Portal>
    </Menu.Root>
  );
}

function Item({ children, onSelect }: { children: string; onSelect: () => void }) {
  return (
    <Menu.Item className={styles.item} onSelect={onSelect}>
      {children}
    </Menu.Item>
  );
}

function Start({ isOn, children, onToggle }: { isOn: boolean; children: string; onToggle: () => void }) {
  return (
    <Menu.CheckboxItem className={styles.item} checked={isOn} onCheckedChange={onToggle}>
      <span>{children}</span>
      <Menu.ItemIndicator>
        <Icon name="check" size={12} />
      </Menu.ItemIndicator>
    </Menu.CheckboxItem>
  );
}
