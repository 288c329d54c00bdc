// How one part of the screen is written into a link and read back. `undefined`: the text is invalid.

export interface Field<T> {
  /** The key in the link. */
  readonly key: string;
  readonly initial: T;
  /** Parses all parameters with this key, in order; `undefined`: invalid. */
  parse(texts: readonly string[]): T | undefined;
  /** The parameters to write; none for the initial value. */
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
