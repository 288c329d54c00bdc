// The menu of a view.

import { useMay } from "../../../data/access.ts";
import type { NamedView } from "../../../data/views.ts";
import { isMine } from "../../../state/picture.ts";
import { IconButton } from "../../../widgets/button.tsx";
import { Menu, MenuCheck, MenuItem, MenuSeparator } from "../../../widgets/menu.tsx";
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
  const mayChooseForAll = useMay("operator");
  return (
    <Menu
      side="right"
      align="start"
      trigger={<IconButton icon="more" label={`More for ${document.title}`} className={styles.more} />}
    >
      <MenuItem onSelect={() => void views.copyLink(view)}>Copy link</MenuItem>
      <MenuItem onSelect={() => void views.copyJson(view)}>Copy JSON</MenuItem>
      <MenuItem onSelect={() => views.exportJson(view)}>Export JSON</MenuItem>
      <MenuSeparator />
      <MenuCheck isOn={library.ownStart === picture} onToggle={() => views.toggleStartHere(picture)}>
        Start with this view here
      </MenuCheck>
      {!isMine(picture) && mayChooseForAll && (
        <MenuCheck isOn={library.sharedStart === picture} onToggle={() => void views.toggleStartEverybody(picture)}>
          Make it the site default
        </MenuCheck>
      )}
      {isOwn && (
        <>
          <MenuSeparator />
          <MenuItem onSelect={onRename}>Rename</MenuItem>
          <MenuItem onSelect={() => void views.overwrite(view)}>Overwrite with the current view</MenuItem>
          <MenuItem onSelect={() => void views.remove(view)}>Delete</MenuItem>
        </>
      )}
    </Menu>
  );
}
