import Synchronization

/// A swift-metrics factory whose metrics Prometheus can scrape.
///
/// Making a metric takes a lock and renders its name and labels; recording to it takes neither, only atomics. Programs
/// therefore make their metrics once and keep them. The same name and labels give the same series. Names and labels
/// that Prometheus would refuse are made valid: other characters become underscores, a counter's name gets `_total`.
///
/// Nothing a program names can stop it: a metric whose name already means something else still records, but is not
/// rendered, and `metrics_registration_clashes_total` counts it.
package final class PrometheusRegistry: Sendable {
    /// The media type of what `render()` returns.
    package static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    private let state: Mutex<RegistryState>
    private let processMetrics: ProcessMetrics?

    /// Makes a registry without metrics.
    ///
    /// - Parameters:
    ///   - descriptions: What is known of the metrics beforehand.
    ///   - defaultBuckets: Upper bounds of histograms whose description has none, in their base unit.
    ///   - processMetrics: Where the metrics of the process come from; nil leaves them out.
    package init(
        descriptions: [MetricDescription] = [],
        defaultBuckets: [Double] = HistogramBuckets.httpDurationSeconds,
        processMetrics: ProcessMetrics? = nil
    ) {
        var state = RegistryState(defaultBuckets: HistogramBuckets.ordered(defaultBuckets))
        for description in descriptions {
            state.describe(description)
        }
        self.state = Mutex(state)
        self.processMetrics = processMetrics
    }

    /// Says what a metric means; its type and buckets hold for series made from then on.
    ///
    /// - Parameter description: The description, which replaces an earlier one of the same name.
    package func describe(_ description: MetricDescription) {
        self.state.withLock { $0.describe(description) }
    }

    /// Renders all metrics in the text format, ordered by name and then by labels.
    ///
    /// With process metrics it reads a few files of `/proc`, which never waits for a disk.
    ///
    /// - Returns: The exposition, to be served as `contentType`.
    package func render() -> String {
        String(decoding: self.renderBytes(), as: UTF8.self)
    }

    /// Renders all metrics as `render()` does.
    ///
    /// - Returns: The exposition as UTF-8.
    package func renderBytes() -> [UInt8] {
        let process = self.processMetrics?.samples() ?? []
        // Copying the tables under the lock takes no time: writing happens without it.
        let (families, descriptions) = self.state.withLock { ($0.families, $0.descriptions) }
        // A metric of the program's own that takes the name of one of the process is the one shown.
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

    /// Returns the series of a name and labels, made now if there is none.
    func series<Series: PrometheusSeries>(
        _ type: Series.Type,
        label: String,
        dimensions: [(String, String)]
    ) -> Series {
        self.state.withLock { $0.series(type, name: label, dimensions: dimensions) }
    }

    /// Forgets a series.
    func remove(_ series: some PrometheusSeries) {
        self.state.withLock { $0.remove(series) }
    }
}
