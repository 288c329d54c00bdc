// The attributes of units as plain columns that can be sent to a worker. Names are codes into a dictionary, numbers are
// typed arrays; code 0 and NaN are missing.

export interface NameValues {
  /** One code per unit. */
  readonly codes: Uint32Array;
  /** Names by code; `names[0]` is null, the missing name. */
  readonly names: readonly (string | null)[];
}

export type NumberValues = Float32Array | Float64Array;

export type AttributeValues = NameValues | NumberValues;

export interface UnitColumns {
  readonly rowCount: number;
  /** An attribute that is not here is missing for every unit. */
  readonly attributes: ReadonlyMap<string, AttributeValues>;
}

export function isNames(values: AttributeValues): values is NameValues {
  return "codes" in values;
}
