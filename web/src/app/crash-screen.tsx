// Catches what a component throws, says so, and offers a way on; the rest of the page lives.

import { Component, type ReactNode } from "react";
import { Button } from "../widgets/button.tsx";
import styles from "./crash-screen.module.css";

/** What browsers say of a chunk that does not come: Chromium, Firefox, Safari. */
const UNLOADED = /dynamically imported module|importing a module|preload CSS/i;

interface CrashState {
  readonly error: Error | null;
}

export class CrashScreen extends Component<{ children: ReactNode }, CrashState> {
  override state: CrashState = { error: null };

  static getDerivedStateFromError(error: unknown): CrashState {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override render() {
    const { error } = this.state;
    if (error === null) return this.props.children;
    const isUnloaded = UNLOADED.test(error.message);
    return (
      <div className={styles.crash} role="alert">
        <h1>{isUnloaded ? "This part of the page could not be loaded" : "This part of the page broke"}</h1>
        <p>
          {isUnloaded
            ? "The server does not answer, or ClusterScape was updated since this page was opened."
            : error.message}
        </p>
        <p>Nothing on the cluster is affected. Reload the page; if it breaks again, start from a fresh link.</p>
        <div>
          <Button look="primary" onClick={() => location.reload()}>
            Reload
          </Button>
          <Button onClick={() => location.assign("/")}>Start afresh</Button>
        </div>
      </div>
    );
  }
}
