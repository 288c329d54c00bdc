import { afterEach, describe, expect, it, vi } from "vitest";
import { sendForLines } from "./ask.ts";
import { createRulesClient } from "./rules-client.ts";

const bytes = new TextEncoder();

function answerWith(...parts: readonly Uint8Array[]): void {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
  vi.stubGlobal("fetch", () => Promise.resolve(new Response(body)));
}

afterEach(() => vi.unstubAllGlobals());

async function readAll(): Promise<unknown[]> {
  const lines = [];
  for await (const line of sendForLines("/any", {})) lines.push(line);
  return lines;
}

describe("an answer that comes line by line", () => {
  it("is the same however the network cuts it", async () => {
    const text = bytes.encode('{"share":0.5}\n{"name":"größer"}\n\n{"end":1}');
    for (let cut = 0; cut <= text.length; cut += 1) {
      answerWith(text.subarray(0, cut), text.subarray(cut));
      expect(await readAll()).toEqual([{ share: 0.5 }, { name: "größer" }, { end: 1 }]);
    }
  });
});

describe("a trial of a rule", () => {
  const tryOut = async () => {
    const shares: number[] = [];
    const answer = await createRulesClient(null).tryOut({ hours: 1 }, (share) => shares.push(share));
    return { shares, answer };
  };

  it("tells how far it is, then what it found", async () => {
    answerWith(bytes.encode('{"share":0}\n{"share":0.4}\n{"answer":{"text":"gpu_util p5 < 15%"}}\n'));
    expect(await tryOut()).toMatchObject({ shares: [0, 0.4], answer: { text: "gpu_util p5 < 15%" } });
  });

  it("fails with what the server says, or where it falls silent", async () => {
    answerWith(bytes.encode('{"share":0}\n{"error":{"code":"store","message":"No disk.","hint":null}}\n'));
    await expect(tryOut()).rejects.toMatchObject({ code: "store", message: "No disk." });
    answerWith(bytes.encode('{"share":0}\n'));
    await expect(tryOut()).rejects.toMatchObject({ code: "unreachable" });
  });
});
