import EventLoopHTTP
import FCMModel
import GatewayCore

/// The state of this replica and of the parts that it depends on.
extension ConsolePages {
    private static let names: Set<Substring> = [
        "fcmgw_messages_total", "fcmgw_upstream_attempt_duration_seconds_bucket", "fcmgw_upstream_inflight",
        "fcmgw_breaker_state", "fcmgw_limiter_fallback_active", "fcmgw_replicas", "fcmgw_leader", "fcmgw_store_up",
        "fcmgw_batches", "fcmgw_batch_waiting_recipients", "fcmgw_audit_last_checkpoint_timestamp_seconds",
        "fcmgw_audit_spool_bytes", "fcmgw_retired_tokens", "fcmgw_build_info",
    ]
    private static let maxRows = 20

    @Sendable
    func overview(_ request: ConsoleRequest) async throws -> ConsolePage {
        // The text may have many tenants.
        let reading = await computeOffLoop {
            MetricsReading(String(decoding: self.exposition.render(), as: UTF8.self), names: Self.names)
        }
        let outcomes = reading.sums("fcmgw_messages_total", by: "outcome").filter { $0.value > 0 }
            .sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        let breakers = reading["fcmgw_breaker_state"]
        let content: HTML = """
            \(self.state(reading))
            <h2>Sends of this replica</h2>
            \(self.rates(reading, request.exchange.arrival))
            \(HourChart.svg(self.console.history.minutes(of: nil)))
            \(HTML.table("Outcomes since the start", ["Outcome", "Recipients"], outcomes.prefix(Self.maxRows),
                empty: "Nothing was sent since the start.") { ["\($0.key)", "\(Int($0.value))"] })
            <h2>FCM</h2>
            \(HTML.table("Breakers that are open", ["Project", "API", "State"],
                breakers.filter { $0.value != 0 }.prefix(Self.maxRows),
                empty: breakers.isEmpty ? "FCM was not called yet." : "All breakers are closed: calls go through."
            ) { sample in
                [
                    .short(sample.labels["project"]), "\(sample.labels["api"])",
                    .state(sample.value == 1 ? "some calls go through" : "no calls go through", isGood: false),
                ]
            })
            """
        return ConsolePage("Overview", content, isLive: true)
    }

    private func state(_ reading: MetricsReading) -> HTML {
        func gauge(_ name: Substring) -> Int { Int(reading.value(name) ?? 0) }
        func list(_ name: Substring) -> HTML {
            let parts = reading.sums(name, by: "state").filter { $0.value > 0 }.sorted { $0.key < $1.key }
            return parts.isEmpty ? "none" : "\(parts.map { "\(Int($0.value)) \($0.key)" }.joined(separator: ", "))"
        }
        let refusal = self.readiness.refusal(at: .now)
        let (isFallback, spool) = (gauge("fcmgw_limiter_fallback_active") > 0, gauge("fcmgw_audit_spool_bytes"))
        let limits = self.console.whenRedisFails.map { rule -> HTML in
            .state(isFallback ? "Redis fails (limits.whenRedisFails: \(rule))" : "shared in Redis", isGood: !isFallback)
        }
        let leads: HTML? = gauge("fcmgw_leader") == 1 ? ", this one leads" : nil
        let checkpoint = Int64(gauge("fcmgw_audit_last_checkpoint_timestamp_seconds"))
        return .facts([
            ("Readiness", .state(refusal?.rawValue ?? "ready", isGood: refusal == nil)),
            ("Store", gauge("fcmgw_store_up") > 0 ? .state("up", isGood: true) : .state("down", isGood: false)),
            ("Limits", limits ?? "in memory"),
            (
                "Replicas",
                reading.value("fcmgw_replicas").map { "\(Int($0))\(leads)" } ?? "one, with a store of its own"
            ),
            ("Audit", .state(spool == 0 ? "in the store" : "\(spool) bytes wait", isGood: spool == 0)),
            (
                "Last checkpoint (UTC)",
                .moment(checkpoint == 0 ? nil : Timestamp(microseconds: checkpoint * 1_000_000))
            ),
            ("Batches and asynchronous messages", list("fcmgw_batches")),
            ("Recipients of batches that wait", "\(gauge("fcmgw_batch_waiting_recipients"))"),
            ("Retired tokens", list("fcmgw_retired_tokens")),
            ("Version", "\(reading["fcmgw_build_info"].first?.labels["version"])"),
        ])
    }

    private func rates(_ reading: MetricsReading, _ now: Uptime) -> HTML {
        guard let (earlier, age) = self.console.history.earlier(than: now) else {
            return "<p>The first figures are due soon.</p>"
        }
        let totals = ConsoleHistory.Totals(reading)
        let minutes = max(1, age / .seconds(1)) / 60
        func rate(_ now: Int, _ before: Int) -> HTML { "\(Int((Double(now - before) / minutes).rounded())) a minute" }
        func latency(_ part: Double) -> HTML {
            guard let bound = totals.latency(part, since: earlier) else { return "no calls" }
            return bound.isInfinite ? "longer than measured" : "at most \(Int((bound * 1000).rounded(.up))) ms"
        }
        return .facts([
            ("Accepted", rate(totals.sum.accepted, earlier.sum.accepted)),
            ("Not accepted", rate(totals.sum.others, earlier.sum.others)),
            ("FCM's time, median", latency(0.5)),
            ("FCM's time, 99 %", latency(0.99)),
            ("Calls to FCM now", "\(Int(reading.value("fcmgw_upstream_inflight") ?? 0))"),
            ("Over the last", "\(Int((minutes * 60).rounded())) seconds"),
        ])
    }
}

/// A chart of an hour: one bar for each minute, of recipients that were accepted and, above them, of others.
enum HourChart {
    private static let (width, height) = (600, 120)

    /// Draws the minutes, of which the last one is the latest.
    static func svg(_ minutes: [ConsoleHistory.Counts]) -> HTML {
        let most = minutes.map { $0.accepted + $0.others }.max() ?? 0
        guard !minutes.isEmpty else { return "<p>The chart begins with the first full minute.</p>" }
        guard most > 0 else { return "<p>The metrics have no send in a full minute of the last hour.</p>" }
        let step = Self.width / ConsoleHistory.minutes
        let bars = minutes.reversed().enumerated().filter { $1.accepted + $1.others > 0 }
            .map { age, minute -> HTML in
                let x = Self.width - (age + 1) * step
                let accepted = minute.accepted * Self.height / most
                let both = max(accepted, (minute.accepted + minute.others) * Self.height / most)
                return """
                    <rect class="accepted" x="\(x)" y="\(Self.height - accepted)" width="\(step - 2)" height="\(accepted)"/>\
                    <rect class="others" x="\(x)" y="\(Self.height - both)" width="\(step - 2)" height="\(both - accepted)"/>
                    """
            }
        let (accepted, others) = minutes.reduce((0, 0)) { ($0.0 + $1.accepted, $0.1 + $1.others) }
        let text = "Last hour: \(accepted) recipients accepted (below), \(others) not (above); at most \(most) a minute"
        return """
            <figure><svg viewBox="0 0 \(Self.width) \(Self.height)" role="img" aria-label="\(text)">\(bars)</svg>
            <figcaption>\(text)</figcaption></figure>
            """
    }
}
