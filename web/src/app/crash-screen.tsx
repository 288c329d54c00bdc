// Error boundary: shows the error of a component with ways to recover; the rest of the page keeps working.

import { Component, type ReactNode } from "react";
import { Button } from "../widgets/button.tsx";
import styles from "./crash-screen.module.css";

/** Messages of browsers when a chunk fails to load: Chromium, Firefox, Safari. */
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
        <h1>{isUnloaded ? "This part of the page could not be loaded" : "This part of the page crashed"}</h1>
        <p>
          {isUnloaded
            ? "The server is not responding, or ClusterScape was updated since you opened this page."
            : error.message}
        </p>
        <p>The cluster is not affected. Reload the page. If it fails again, start over.</p>
        <div>
          <Button look="primary" onClick={() => location.reload()}>
            Reload
          </Button>
          <Button onClick={() => location.assign("/")}>Start over</Button>
        </div>
      </div>
    );
  }
}
