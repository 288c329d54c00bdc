// Stable order of many numbers in linear time: a radix sort on their bits, sixteen at a time. NaN (missing) last.

const DIGITS = 4;
const DIGIT_VALUES = 0x10000;
const LAST = 0xffff;
const SIGN = 0x8000;

/** The indices 0 … values.length − 1 in order; equals stay as they are, also in descending order. */
export function orderNumbers(values: Float64Array, isDescending: boolean): Uint32Array {
  const digits = toSortableDigits(values, isDescending);
  let order = new Uint32Array(values.length).map((_, index) => index);
  let spare = new Uint32Array(values.length);
  const starts = new Uint32Array(DIGIT_VALUES);
  for (let digit = 0; digit < DIGITS; digit += 1) {
    starts.fill(0);
    for (let at = digit; at < digits.length; at += DIGITS) {
      const value = digits[at] ?? 0;
      starts[value] = (starts[value] ?? 0) + 1;
    }
    if (starts[digits[digit] ?? 0] === values.length) continue;
    let start = 0;
    for (let value = 0; value < DIGIT_VALUES; value += 1) {
      const count = starts[value] ?? 0;
      starts[value] = start;
      start += count;
    }
    for (const index of order) {
      const value = digits[index * DIGITS + digit] ?? 0;
      const place = starts[value] ?? 0;
      spare[place] = index;
      starts[value] = place + 1;
    }
    [order, spare] = [spare, order];
  }
  return order;
}

/**
 * Four digits per number, the lowest first, that rise as the numbers do: IEEE 754 orders positive numbers as it orders
 * their bits, and negative ones the other way round. (Every browser is little-endian.)
 */
function toSortableDigits(values: Float64Array, isDescending: boolean): Uint16Array {
  // Adding zero copies, and makes minus zero zero.
  const digits = new Uint16Array(values.map((value) => value + 0).buffer);
  for (let index = 0; index < values.length; index += 1) {
    const lowest = index * DIGITS;
    if (Number.isNaN(values[index])) {
      digits.fill(LAST, lowest, lowest + DIGITS);
      continue;
    }
    const isNegative = (digits[lowest + DIGITS - 1] ?? 0) >= SIGN;
    const flip = isNegative === isDescending ? 0 : LAST;
    for (let at = lowest; at < lowest + DIGITS; at += 1) digits[at] = (digits[at] ?? 0) ^ flip;
    // The negative, whose highest bit is set, come first.
    digits[lowest + DIGITS - 1] = (digits[lowest + DIGITS - 1] ?? 0) ^ (isNegative ? 0 : SIGN);
  }
  return digits;
}
