// The reservation that is active or comes next, as a figure of a strip; on request all of them.

import * as Popover from "@radix-ui/react-popover";
import type { ReservationAnswer } from "../../api/generated.ts";
import { formatCount, formatPlural } from "../../base/format.ts";
import { formatAgo, formatInstant } from "../../base/time.ts";
import { PopupContent } from "../../widgets/popup.tsx";
import { FigureButton } from "../../widgets/strip.tsx";
import styles from "./reservation-figure.module.css";

interface ReservationFigureProps {
  readonly reservations: readonly ReservationAnswer[];
  readonly nowMs: number;
}

export function ReservationFigure({ reservations, nowMs }: ReservationFigureProps) {
  const first = reservations[0];
  if (first === undefined) return null;
  const more = reservations.length - 1;
  return (
    <Popover.Root>
      <Popover.Trigger asChild>
        <FigureButton data-tip="Show all reservations">
          <b>{formatPlural(first.gpus, "GPU")}</b>
          <span>
            {sayWhen(first, nowMs)}
            {more > 0 && `, ${more} more`}
          </span>
        </FigureButton>
      </Popover.Trigger>
      <PopupContent className={styles.list} align="center" aria-label="Reservations">
        <h2>Reservations</h2>
        <table>
          <thead>
            <tr>
              <th>Name</th>
              <th>From</th>
              <th>Until</th>
              <th>Nodes</th>
              <th>GPUs</th>
            </tr>
          </thead>
          <tbody>
            {reservations.map((each) => (
              <tr key={`${each.name} ${each.starts_at}`}>
                <th scope="row">
                  {each.name} {each.is_maintenance && <small>maintenance</small>}
                </th>
                <td>{each.is_active ? "now" : formatInstant(each.starts_at, nowMs)}</td>
                <td>{formatInstant(each.ends_at, nowMs)}</td>
                <td title={each.nodes.join(", ")}>{formatCount(each.nodes.length)}</td>
                <td>{formatCount(each.gpus)}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <p>Only jobs that name a reservation start there. Plans and forecasts keep to it.</p>
      </PopupContent>
    </Popover.Root>
  );
}

export function sayWhen({ is_maintenance, is_active, starts_at, ends_at }: ReservationAnswer, nowMs: number): string {
  const kind = is_maintenance ? "in maintenance" : "reserved";
  return is_active ? `${kind} until ${formatInstant(ends_at, nowMs)}` : `${kind} ${formatAgo(starts_at, nowMs)}`;
}
