package import CoreMetrics
import Synchronization

/// A swift-metrics factory whose metrics Prometheus can scrape.
///
/// Creating a metric takes a lock and renders its name and labels. Recording to it takes only atomics. So programs
/// should create their metrics once and keep them. The same name and labels give the same series, which lives as long
/// as the registry. Invalid names and labels are made valid: other characters become underscores, and a counter's name
/// gets `_total`.
///
/// No name can stop the program. A metric whose name already has another meaning still records, but is not rendered,
/// and `metrics_registration_clashes_total` counts it.
package final class PrometheusRegistry: MetricsFactory {
    /// The media type of the exposition.
    package static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    private let state: Mutex<State>
    private let processMetrics: ProcessMetrics?

    /// `defaultBuckets` are for histograms whose description has none. Without `processMetrics` there are no metrics of
    /// the process.
    package init(
        descriptions: [MetricDescription] = [],
        defaultBuckets: [Double] = [],
        processMetrics: ProcessMetrics? = nil
    ) {
        self.state = Mutex(State(descriptions: descriptions, defaultBuckets: defaultBuckets))
        self.processMetrics = processMetrics
    }

    /// Renders all metrics in the text format, ordered by name and then by labels.
    ///
    /// Process metrics read a few files of `/proc`, which never waits for a disk.
    package func render() -> String {
        String(decoding: self.renderBytes(), as: UTF8.self)
    }

    package func renderBytes() -> [UInt8] {
        let process = self.processMetrics?.samples() ?? []
        // Only the tables are copied under the lock, which takes no time. Writing needs no lock.
        let (families, descriptions) = self.state.withLock { ($0.families, $0.descriptions) }
        // A metric of the program replaces a process metric with the same name.
        let shown = process.filter { families[$0.description.name] == nil }
        let names = families.keys + shown.map(\.description.name)

        var writer = ExpositionWriter()
        for name in names.sorted() {
            if let family = families[name] {
                let help = descriptions[name]?.help ?? "Not described."
                writer.writeHeader(name: name, help: help, kind: family.kind)
                for (_, series) in family.series.sorted(by: { $0.key < $1.key }) {
                    series.write(to: &writer)
                }
            } else if let sample = shown.first(where: { $0.description.name == name }) {
                writer.writeHeader(name: name, help: sample.description.help, kind: sample.description.kind)
                let identity = SeriesIdentity(name: name, dimensions: [], kind: sample.description.kind)
                writer.writeSample(identity, value: ExpositionWriter.text(sample.value))
            }
        }
        return writer.bytes
    }

    // MARK: MetricsFactory

    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        self.series(PrometheusCounter.self, label, dimensions)
    }

    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        self.series(PrometheusGauge.self, label, dimensions)
    }

    package func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        if aggregate {
            self.series(PrometheusHistogram.self, label, dimensions)
        } else {
            self.series(PrometheusGauge.self, label, dimensions)
        }
    }

    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        self.series(PrometheusHistogram.self, label, dimensions)
    }

    // A series that disappeared would look like a target that lost it. The series are bounded, so none needs to be
    // destroyed.
    package func destroyCounter(_ handler: any CounterHandler) {}
    package func destroyRecorder(_ handler: any RecorderHandler) {}
    package func destroyTimer(_ handler: any TimerHandler) {}

    private func series<Series: PrometheusSeries>(
        _ type: Series.Type,
        _ name: String,
        _ dimensions: [(String, String)]
    ) -> Series {
        self.state.withLock { $0.series(type, name: name, dimensions: dimensions) }
    }
}

extension PrometheusRegistry {
    /// The descriptions and the created series. The registry's lock protects them.
    struct State: Sendable {
        /// The series of one name.
        struct Family: Sendable {
            let kind: MetricDescription.Kind
            /// The label names of all series, sorted.
            let labelNames: [String]
            var series: [String: any PrometheusSeries] = [:]
        }

        /// The reason that a series could not be registered. Its values are not rendered.
        enum Clash: String {
            /// The name belongs to a metric of another type, or was described as one.
            case type
            /// The metric has series with other label names, or two of the labels have the same name.
            case labels
            /// A sample would have the name of another metric's sample, such as `x_count` beside a histogram `x`.
            case name

            static let counter = MetricDescription(
                name: "metrics_registration_clashes_total",
                help: "Metrics created with a name that has another type or other labels; their values are not shown.",
                kind: .counter
            )
        }

        private(set) var families: [String: Family] = [:]
        let descriptions: [String: MetricDescription]
        /// The names of samples, with the family that writes each. A histogram's own name is here too.
        private var owners: [String: String] = [:]
        private let defaultBuckets: [Double]

        init(descriptions: [MetricDescription], defaultBuckets: [Double]) {
            self.descriptions = ([Clash.counter] + descriptions).reduce(into: [:]) { $0[$1.name] = $1 }
            self.defaultBuckets = MetricDescription.ordered(defaultBuckets)
        }

        /// Returns the series with a name and labels. Creates it if there is none.
        ///
        /// A program that gives one name two meanings still gets a series that records. Its values are not rendered,
        /// and an operator sees the clash in the counter.
        mutating func series<Series: PrometheusSeries>(
            _ type: Series.Type,
            name: String,
            dimensions: [(String, String)]
        ) -> Series {
            let identity = SeriesIdentity(name: name, dimensions: dimensions, kind: Series.kind)
            if let known = self.families[identity.name]?.series[identity.labels] as? Series {
                return known
            }
            let buckets = self.descriptions[identity.name]?.buckets ?? self.defaultBuckets
            let series = Series(identity: identity, buckets: buckets)
            if let clash = self.insert(series) {
                let dimensions = [("reason", clash.rawValue)]
                let counter = PrometheusCounter(
                    identity: SeriesIdentity(name: Clash.counter.name, dimensions: dimensions, kind: .counter),
                    buckets: []
                )
                let known = self.families[counter.identity.name]?.series[counter.identity.labels] as? PrometheusCounter
                // If the program itself used this name for something else, the clash can't be reported.
                if known == nil { _ = self.insert(counter) }
                (known ?? counter).increment(by: 1)
            }
            return series
        }

        private mutating func insert<Series: PrometheusSeries>(_ series: Series) -> Clash? {
            let identity = series.identity
            guard !identity.hasDuplicateLabels else { return .labels }
            if let family = self.families[identity.name] {
                guard family.kind == Series.kind else { return .type }
                guard family.labelNames == identity.labelNames else { return .labels }
                self.families[identity.name]?.series[identity.labels] = series
                return nil
            }
            if let description = self.descriptions[identity.name], description.kind != Series.kind { return .type }
            let suffixes = Series.kind == .histogram ? ["", "_bucket", "_sum", "_count"] : [""]
            let names = suffixes.map { identity.name + $0 }
            guard names.allSatisfy({ self.owners[$0] == nil }) else { return .name }
            for name in names { self.owners[name] = identity.name }
            self.families[identity.name] = Family(
                kind: Series.kind,
                labelNames: identity.labelNames,
                series: [identity.labels: series]
            )
            return nil
        }
    }
}
