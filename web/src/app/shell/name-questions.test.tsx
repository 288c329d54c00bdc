// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { NameQuestion } from "../../api/generated.ts";
import { NameQuestions } from "./name-questions.tsx";

const QUESTION: NameQuestion = {
  exporter: "localhost:19401",
  host_name: "c7a9",
  gpus: 8,
  problem: 'calls itself "c7a9", which no scheduler knows; it may be gpu01, where no exporter is',
  proposed: "gpu01",
  setting: '"localhost:19401" = "gpu01"',
  is_counted: false,
};

afterEach(cleanup);

describe("questions about names", () => {
  it("are not there where nothing is open", () => {
    const { container } = render(<NameQuestions questions={[]} nodesWithoutExporter={[]} />);
    expect(container.childElementCount).toBe(0);
  });

  it("say what is proposed and that nothing is counted until then", () => {
    render(<NameQuestions questions={[QUESTION]} nodesWithoutExporter={["gpu01", "gpu02"]} />);
    expect(screen.getByText(QUESTION.setting)).toBeTruthy();
    expect(screen.getByText(/GPUs are not counted/)).toBeTruthy();
    expect(screen.getByText(/without an exporter/).parentElement?.textContent).toContain("gpu01, gpu02");
  });

  it("copies all suggested lines", async () => {
    const writeText = vi.fn(() => Promise.resolve());
    vi.stubGlobal("navigator", { clipboard: { writeText } });
    const other = { ...QUESTION, exporter: "localhost:19402", setting: '"localhost:19402" = "gpu02"' };
    render(<NameQuestions questions={[QUESTION, other]} nodesWithoutExporter={[]} />);
    fireEvent.click(screen.getByRole("button", { name: "Copy lines" }));
    expect(await screen.findByRole("button", { name: "Copied" })).toBeTruthy();
    expect(writeText).toHaveBeenCalledWith(`${QUESTION.setting}\n${other.setting}\n`);
    vi.unstubAllGlobals();
  });
});
