// Hands the reader a text to paste.

/** Pages that are not served over TLS have no clipboard of their own; the old way works there. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  area.style.position = "fixed";
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
