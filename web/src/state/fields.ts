// How one part of the screen is written into a link and read back. A field that reads nonsense says so by `undefined`.

export interface Field<T> {
  /** The key in the link. */
  readonly key: string;
  readonly initial: T;
  /** The value of all parameters with this key, in order; `undefined` where they make no sense. */
  parse(texts: readonly string[]): T | undefined;
  /** What to write; nothing for the initial value. */
  serialize(value: T): readonly string[];
}

export function choiceField<T extends string>(key: string, choices: readonly T[], initial: T): Field<T> {
  return {
    key,
    initial,
    parse: ([text]) => choices.find((choice) => choice === text),
    serialize: (value) => (value === initial ? [] : [value]),
  };
}

export function textField(key: string): Field<string> {
  return {
    key,
    initial: "",
    parse: ([text = ""]) => text,
    serialize: (value) => (value === "" ? [] : [value]),
  };
}
