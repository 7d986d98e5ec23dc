import Foundation
import GatewayCore
import Yams

/// What stands in the file as a node and in a variable as text.
protocol ConfigurationValue: Sendable {
    init(node: Node) throws(ConfigurationFaults)
    init(variable: String) throws(ConfigurationFaults)
}

/// Why something is no value of a key, each with its line where the node has several.
struct ConfigurationFaults: Error {
    var faults: [(line: Int?, message: String)]

    init(_ node: Node? = nil, _ message: String) {
        self.faults = [(node?.mark?.line, message)]
    }

    init(_ faults: [(line: Int?, message: String)]) {
        self.faults = faults
    }
}

extension String: ConfigurationValue {
    init(node: Node) throws(ConfigurationFaults) {
        guard case .scalar(let scalar) = node, scalar.resolvedTagName == .str else {
            throw ConfigurationFaults(node, "expected text\(YAMLSource.butFound(node))")
        }
        self = scalar.string
    }

    init(variable: String) { self = variable }
}

extension Int: ConfigurationValue {
    init(node: Node) throws(ConfigurationFaults) {
        guard let number = node.wholeNumber else {
            throw ConfigurationFaults(node, "expected a whole number\(YAMLSource.butFound(node))")
        }
        self = number
    }

    init(variable: String) throws(ConfigurationFaults) {
        guard let number = Int(variable) else {
            throw ConfigurationFaults(nil, "\"\(variable)\" is not a whole number")
        }
        self = number
    }
}

extension Bool: ConfigurationValue {
    init(node: Node) throws(ConfigurationFaults) {
        guard case .scalar(let scalar) = node, scalar.resolvedTagName == .bool, let value = Bool(scalar.string) else {
            throw ConfigurationFaults(node, "expected true or false\(YAMLSource.butFound(node))")
        }
        self = value
    }

    init(variable: String) throws(ConfigurationFaults) {
        guard let value = Bool(variable) else {
            throw ConfigurationFaults(nil, "\"\(variable)\" is not true or false")
        }
        self = value
    }
}

extension [String]: ConfigurationValue {
    init(node: Node) throws(ConfigurationFaults) {
        guard case .sequence(let sequence) = node else {
            throw ConfigurationFaults(node, "expected a list of texts\(YAMLSource.butFound(node))")
        }
        self = []
        for element in sequence { self.append(try String(node: element)) }
    }

    /// Commas separate the elements; an empty variable is an empty list, not a list of one empty text.
    init(variable: String) {
        let elements = variable.split(separator: ",", omittingEmptySubsequences: false)
            .map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }
        self = elements == [""] ? [] : elements
    }
}

/// A list of rate policies: a sequence of `{rate, perS, burst}` in the file, the same as JSON in a variable.
///
/// JSON is read as the YAML it also is, so that both refuse unknown, repeated and missing members alike.
struct RatePolicyList: ConfigurationValue {
    private static let members = ["rate", "perS", "burst"]

    /// The policies that the gateway can keep.
    private(set) var policies: [RatePolicy] = []
    /// What is wrong with the list although each of its numbers is in its range.
    private(set) var problems: [String] = []

    init(node: Node) throws(ConfigurationFaults) {
        guard case .sequence(let sequence) = node else {
            throw ConfigurationFaults(node, "expected a list of {rate, perS, burst}")
        }
        guard !sequence.isEmpty else { throw ConfigurationFaults(node, "must hold at least one policy") }
        var faults: [(line: Int?, message: String)] = []
        for (index, element) in sequence.enumerated() {
            faults += self.append(element).map { (line: $0.mark?.line, message: "policy \(index + 1): \($1)") }
        }
        guard faults.isEmpty else { throw ConfigurationFaults(faults) }
        if sequence.count > LimitPolicies.maxPoliciesPerScope {
            self.problems = ["at most \(LimitPolicies.maxPoliciesPerScope) policies for one scope"]
        } else if self.policies.count < sequence.count {
            self.problems = ["a policy must refill its burst within 30 days"]
        }
    }

    init(variable: String) throws(ConfigurationFaults) {
        guard (try? JSONSerialization.jsonObject(with: Data(variable.utf8))) is [Any],
            let node = try? Yams.compose(yaml: variable)
        else {
            throw ConfigurationFaults(nil, #"expected a JSON list such as [{"rate":180,"perS":60,"burst":60}]"#)
        }
        try self.init(node: node)
    }

    /// The canonical JSON text of policies: one line, members sorted.
    static func json(_ policies: [RatePolicy]) -> String {
        let objects = policies.map { #"{"burst":\#($0.burst),"perS":\#($0.periodSeconds),"rate":\#($0.rate)}"# }
        return "[\(objects.joined(separator: ","))]"
    }

    /// Takes one policy, or says what is wrong with it and where.
    private mutating func append(_ node: Node) -> [(Node, String)] {
        guard case .mapping(let mapping) = node else { return [(node, "expected {rate, perS, burst}")] }
        var faults: [(Node, String)] = []
        var numbers: [String: Int] = [:]
        for (key, value) in mapping {
            let name = key.scalar?.string ?? "?"
            if !Self.members.contains(name) {
                faults.append((key, "\"\(name)\" is not known; a policy has rate, perS and burst"))
            } else if let number = value.wholeNumber {
                numbers[name] = number
            } else {
                faults.append((value, "\(name) must be a whole number"))
            }
        }
        let missing = Self.members.filter { name in !mapping.contains { $0.key.scalar?.string == name } }
        if !missing.isEmpty { faults.append((node, "\(missing.joined(separator: ", ")) missing")) }
        guard faults.isEmpty, let rate = numbers["rate"], let period = numbers["perS"], let burst = numbers["burst"]
        else { return faults }
        let ranges = [
            ("rate", rate, RatePolicy.maxCount), ("perS", period, RatePolicy.maxPeriodSeconds),
            ("burst", burst, RatePolicy.maxCount),
        ]
        if let (name, number, limit) = ranges.first(where: { !(1...$2).contains($1) }) {
            return [(node, "\(name) must be from 1 to \(limit), not \(number)")]
        }
        if let policy = RatePolicy(rate: rate, periodSeconds: period, burst: burst) { self.policies.append(policy) }
        return []
    }
}
