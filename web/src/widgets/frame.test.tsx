// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Loadable } from "../base/loadable.ts";
import { Problem } from "../base/problem.ts";
import { Frame } from "./frame.tsx";

afterEach(cleanup);

function show(source: Partial<Loadable<string[]>>) {
  const retry = vi.fn();
  render(
    <Frame
      source={{ value: undefined, problem: null, receivedAt: 0, retry, ...source }}
      what="nodes"
      isEmpty={(value) => value.length === 0}
      empty="No nodes."
    >
      {(value) => <p>{value.join()}</p>}
    </Frame>,
  );
  return retry;
}

describe("the frame", () => {
  const problem = new Problem("the server is not responding", { code: "unreachable", hint: "Start it." });

  it("says that it loads", () => {
    show({});
    expect(screen.getByRole("status").textContent).toContain("Loading nodes");
  });

  it("says what failed, what to do, and tries again", () => {
    const retry = show({ problem });
    expect(screen.getByRole("alert").textContent).toContain(
      "Could not load nodesThe server is not responding.Start it.",
    );
    fireEvent.click(screen.getByRole("button", { name: "Try again" }));
    expect(retry).toHaveBeenCalledOnce();
  });

  it("shows the last known state as such when a newer one failed to come", () => {
    show({ value: ["gpu-001"], problem, receivedAt: Date.now() });
    expect(screen.getByText("gpu-001")).toBeTruthy();
    expect(screen.getByRole("status").textContent).toContain("Last known state");
  });

  it("says that there is nothing", () => {
    show({ value: [] });
    expect(screen.getByText("No nodes.")).toBeTruthy();
  });
});
