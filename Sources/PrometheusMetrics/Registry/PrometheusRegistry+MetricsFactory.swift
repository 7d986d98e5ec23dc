package import CoreMetrics

extension PrometheusRegistry: MetricsFactory {
    /// Returns the counter of a name and labels.
    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        self.series(PrometheusCounter.self, label: label, dimensions: dimensions)
    }

    /// Returns the counter of a name and labels; whole and fractional amounts go to the same one.
    package func makeFloatingPointCounter(
        label: String,
        dimensions: [(String, String)]
    ) -> any FloatingPointCounterHandler {
        self.series(PrometheusCounter.self, label: label, dimensions: dimensions)
    }

    /// Returns the gauge of a name and labels.
    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        self.series(PrometheusGauge.self, label: label, dimensions: dimensions)
    }

    /// Returns a histogram, or a gauge if only the last value counts.
    ///
    /// - Parameters:
    ///   - label: The metric's name.
    ///   - dimensions: Its labels.
    ///   - aggregate: Whether all values count, not only the last.
    /// - Returns: The handler, new or known.
    package func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        if aggregate {
            self.series(PrometheusHistogram.self, label: label, dimensions: dimensions)
        } else {
            self.series(PrometheusGauge.self, label: label, dimensions: dimensions)
        }
    }

    /// Returns the histogram of a name and labels, in seconds.
    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        self.series(PrometheusHistogram.self, label: label, dimensions: dimensions)
    }

    /// Forgets a counter: it is no longer rendered, and the next of its name starts at zero.
    package func destroyCounter(_ handler: any CounterHandler) {
        self.destroy(handler)
    }

    /// Forgets a counter, as `destroyCounter(_:)` does.
    package func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) {
        self.destroy(handler)
    }

    /// Forgets a gauge.
    package func destroyMeter(_ handler: any MeterHandler) {
        self.destroy(handler)
    }

    /// Forgets a histogram or a gauge.
    package func destroyRecorder(_ handler: any RecorderHandler) {
        self.destroy(handler)
    }

    /// Forgets a timer's histogram.
    package func destroyTimer(_ handler: any TimerHandler) {
        self.destroy(handler)
    }

    private func destroy(_ handler: AnyObject) {
        // A handler of another factory is none of ours to forget.
        if let series = handler as? any PrometheusSeries {
            self.remove(series)
        }
    }
}
