/// Everything a registry knows: what was described and what was made.
///
/// Pure: the registry holds it under its lock.
struct RegistryState: Sendable {
    /// Metrics with at least one series, by name.
    private(set) var families: [String: MetricFamily] = [:]

    /// Descriptions by the name of the metric.
    private(set) var descriptions: [String: MetricDescription] = [:]

    /// Names of samples and the family that writes them; a histogram's own name is here too.
    private var owners: [String: String] = [:]

    private let defaultBuckets: [Double]

    init(defaultBuckets: [Double]) {
        self.defaultBuckets = defaultBuckets
        self.describe(RegistrationClash.counter)
    }

    /// Keeps a description, instead of an earlier one of that name.
    mutating func describe(_ description: MetricDescription) {
        self.descriptions[description.name] = description
    }

    /// Returns the series of a name and labels, made now if there is none.
    ///
    /// A program that gives one name two meanings still gets something that records; nobody can read it, and the clash
    /// is counted where an operator sees it.
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
            self.count(clash)
        }
        return series
    }

    /// Forgets a series, if it is the registered one.
    mutating func remove(_ series: some PrometheusSeries) {
        let identity = series.identity
        guard var family = self.families[identity.name], family.series[identity.labels] === series else { return }
        family.series[identity.labels] = nil
        guard family.series.isEmpty else {
            self.families[identity.name] = family
            return
        }
        self.families[identity.name] = nil
        self.owners = self.owners.filter { $0.value != identity.name }
    }

    private mutating func insert<Series: PrometheusSeries>(_ series: Series) -> RegistrationClash? {
        let identity = series.identity
        guard !identity.hasDuplicateLabels else { return .labels }
        guard let family = self.families[identity.name] else {
            return self.insertFirst(series)
        }
        guard family.kind == Series.kind else { return .type }
        guard family.labelNames == identity.labelNames else { return .labels }
        self.families[identity.name]?.series[identity.labels] = series
        return nil
    }

    private mutating func insertFirst<Series: PrometheusSeries>(_ series: Series) -> RegistrationClash? {
        let identity = series.identity
        if let description = self.descriptions[identity.name], description.kind != Series.kind {
            return .type
        }
        var family = MetricFamily(kind: Series.kind, labelNames: identity.labelNames)
        let names = Set(family.sampleNames(identity.name) + [identity.name])
        guard names.allSatisfy({ self.owners[$0] == nil }) else { return .name }
        for name in names {
            self.owners[name] = identity.name
        }
        family.series[identity.labels] = series
        self.families[identity.name] = family
        return nil
    }

    private mutating func count(_ clash: RegistrationClash) {
        let identity = SeriesIdentity(
            name: RegistrationClash.counter.name,
            dimensions: [("reason", clash.rawValue)],
            kind: .counter
        )
        if let counter = self.families[identity.name]?.series[identity.labels] as? PrometheusCounter {
            counter.increment(by: 1 as Int64)
            return
        }
        let counter = PrometheusCounter(identity: identity, buckets: [])
        counter.increment(by: 1 as Int64)
        // If the program itself took this name for something else, there is nowhere left to say so.
        _ = self.insert(counter)
    }
}
