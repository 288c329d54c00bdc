// The active or next reservation as a figure of the summary strip; a click lists all of them.

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
            {reservations.map((reservation) => (
              <tr key={`${reservation.name} ${reservation.starts_at}`}>
                <th scope="row">
                  {reservation.name} {reservation.is_maintenance && <small>maintenance</small>}
                </th>
                <td>{reservation.is_active ? "now" : formatInstant(reservation.starts_at, nowMs)}</td>
                <td>{formatInstant(reservation.ends_at, nowMs)}</td>
                <td title={reservation.nodes.join(", ")}>{formatCount(reservation.nodes.length)}</td>
                <td>{formatCount(reservation.gpus)}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <p>Only jobs that request a reservation can start there. Plans and forecasts respect it.</p>
      </PopupContent>
    </Popover.Root>
  );
}

export function sayWhen({ is_maintenance, is_active, starts_at, ends_at }: ReservationAnswer, nowMs: number): string {
  const kind = is_maintenance ? "in maintenance" : "reserved";
  return is_active ? `${kind} until ${formatInstant(ends_at, nowMs)}` : `${kind} ${formatAgo(starts_at, nowMs)}`;
}
