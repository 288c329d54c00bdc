// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { ConfirmDialog } from "./confirm-dialog.tsx";

afterEach(cleanup);

function show(onConfirm: () => Promise<void>) {
  render(
    <ConfirmDialog
      trigger={<button type="button">Delete…</button>}
      title="Delete it?"
      verb="Delete"
      onConfirm={onConfirm}
    >
      It goes for good.
    </ConfirmDialog>,
  );
  fireEvent.click(screen.getByRole("button", { name: "Delete…" }));
}

describe("a question before something goes", () => {
  it("does nothing where it is kept", () => {
    const confirm = vi.fn(async () => {});
    show(confirm);
    expect(screen.getByRole("alertdialog", { name: "Delete it?" }).textContent).toContain("It goes for good.");
    fireEvent.click(screen.getByRole("button", { name: "Keep" }));
    expect(screen.queryByRole("alertdialog")).toBeNull();
    expect(confirm).not.toHaveBeenCalled();
  });

  it("closes once it is done", async () => {
    const confirm = vi.fn(async () => {});
    show(confirm);
    fireEvent.click(screen.getByRole("button", { name: "Delete" }));
    await waitFor(() => expect(screen.queryByRole("alertdialog")).toBeNull());
    expect(confirm).toHaveBeenCalledOnce();
  });

  it("stays open and says why where it cannot be done", async () => {
    show(async () => {
      throw new Error("it is somebody else’s");
    });
    fireEvent.click(screen.getByRole("button", { name: "Delete" }));
    await waitFor(() => expect(screen.getByRole("alert").textContent).toContain("somebody else’s"));
    expect(screen.getByRole("alertdialog")).not.toBeNull();
  });
});
