// A text as the characters a reader sees: an emoji of several parts and a letter with its accents are one each.

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** Almost all names: there a character is a code unit, and telling so is much quicker. */
const PLAIN = /^[ -~]*$/;

export function splitCharacters(text: string): readonly string[] {
  return PLAIN.test(text) ? text.split("") : Array.from(segmenter.segment(text), ({ segment }) => segment);
}
