// Splits text into the characters that a reader sees: an emoji of several code points or a letter with accents is one.

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** Most names: each character is one code unit, and this check is much faster. */
const PLAIN = /^[ -~]*$/;

export function splitCharacters(text: string): readonly string[] {
  return PLAIN.test(text) ? text.split("") : Array.from(segmenter.segment(text), ({ segment }) => segment);
}
