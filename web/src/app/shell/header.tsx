// The header of every page: name, views, search, live indicator, theme, account.

import { useEffect, useState } from "react";
import { useCluster } from "../../data/queries.ts";
import { openView } from "../../state/changes.ts";
import { serializeScreen } from "../../state/screen.ts";
import { useChangeScreen, useScreen } from "../../state/use-screen.ts";
import { Button } from "../../widgets/button.tsx";
import { Icon } from "../../widgets/icon.tsx";
import { Kbd } from "../../widgets/kbd.tsx";
import { Menu, MenuChoices } from "../../widgets/menu.tsx";
import { Tag } from "../../widgets/tag.tsx";
import { Palette } from "../palette/palette.tsx";
import { TourButton } from "../tour/tour.tsx";
import { VIEWS } from "../views.ts";
import styles from "./header.module.css";
import { IS_APPLE, KeysHelp } from "./keys-help.tsx";
import { LiveIndicator } from "./live-indicator.tsx";
import { Logo } from "./logo.tsx";
import { ThemeMenu } from "./theme-menu.tsx";
import { UserMenu } from "./user-menu.tsx";

export function Header({ onSignedOut }: { onSignedOut: () => void }) {
  const cluster = useCluster().value;
  const [areKeysOpen, setKeysOpen] = useState(false);
  useTitle(cluster?.cluster);
  return (
    <header className={styles.header}>
      <SkipLink />
      <Logo />
      <Heading />
      {cluster && cluster.cluster !== "demo" && <span className={styles.cluster}>{cluster.cluster}</span>}
      {cluster?.is_demo && (
        <Tag tone="warn" tip="A simulated cluster: no data here is real">
          demo
        </Tag>
      )}
      {cluster?.hides_names && (
        <span className={styles.hidden}>
          <Tag tip="This site hides other people's names: pseudonyms replace the users and projects that are not yours">
            names hidden
          </Tag>
        </span>
      )}
      <Navigation />
      <span className={styles.space} />
      <SearchBox onKeys={() => setKeysOpen(true)} />
      <LiveIndicator />
      <TourButton />
      <ThemeMenu />
      <UserMenu onSignedOut={onSignedOut} />
      <KeysHelp isOpen={areKeysOpen} onOpenChange={setKeysOpen} />
    </header>
  );
}

/** For keyboard users: skips the header, the summary and the controls. */
function SkipLink() {
  const skip = () => {
    const main = document.querySelector<HTMLElement>("main");
    if (main === null) return;
    main.tabIndex = -1;
    main.focus();
  };
  return (
    <button type="button" className={styles.skip} onClick={skip}>
      Skip to content
    </button>
  );
}

/** Selection, cluster and product name, most specific first: browser tabs stay distinguishable. */
function useTitle(cluster: string | undefined): void {
  const { selection } = useScreen();
  useEffect(() => {
    document.title = [selection?.key, cluster, "ClusterScape"].filter(Boolean).join(" · ");
  }, [selection, cluster]);
}

function Heading() {
  const { view } = useScreen();
  return <h1 className={styles.heading}>{VIEWS.find(({ name }) => name === view)?.title}</h1>;
}

function Navigation() {
  const screen = useScreen();
  const change = useChangeScreen();
  return (
    <nav className={styles.nav} aria-label="Views">
      <ViewMenu />
      {VIEWS.filter(({ isApart }) => !isApart).map(({ name, title }) => (
        <a
          key={name}
          href={serializeScreen(openView(name)(screen))}
          aria-current={screen.view === name ? "page" : undefined}
          onClick={(event) => {
            if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
            event.preventDefault();
            change(openView(name));
          }}
        >
          {title}
        </a>
      ))}
    </nav>
  );
}

/** The same views as a menu, for narrow windows. */
function ViewMenu() {
  const { view } = useScreen();
  const change = useChangeScreen();
  const choices = VIEWS.filter(({ name, isApart }) => !isApart || name === view);
  return (
    <div className={styles.menu}>
      <Menu
        align="start"
        trigger={
          <Button>
            {VIEWS.find(({ name }) => name === view)?.title}
            <Icon name="chevron" size={12} />
          </Button>
        }
      >
        <MenuChoices
          value={view}
          choices={choices.map(({ name, title }) => ({ value: name, title }))}
          onChoose={(name) => change(openView(name))}
        />
      </Menu>
    </div>
  );
}

const SHORTCUT = IS_APPLE ? "⌘K" : "Ctrl K";

function SearchBox({ onKeys }: { onKeys: () => void }) {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.metaKey || event.ctrlKey)) return;
      event.preventDefault();
      setOpen((wasOpen) => !wasOpen);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  return (
    <>
      <button
        type="button"
        className={styles.search}
        aria-label={`Find workload, user, node… ${SHORTCUT}`}
        aria-keyshortcuts={IS_APPLE ? "Meta+K" : "Control+K"}
        onClick={() => setOpen(true)}
      >
        <Icon name="search" size={14} />
        <span>Find workload, user, node…</span>
        <Kbd>{SHORTCUT}</Kbd>
      </button>
      <Palette isOpen={isOpen} onOpenChange={setOpen} onKeys={onKeys} />
    </>
  );
}
