import Foundation
import GatewayCore
import Yams

/// A value with two forms: a node in the file, and text in a variable.
protocol ConfigurationValue: Sendable {
    init(node: Node) throws(ConfigurationFaults)
    init(variable: String) throws(ConfigurationFaults)
}

/// The reasons that something is not a value of a key. Each has the line of the node that it concerns, but no
/// line if the value comes from a variable.
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

extension Double: ConfigurationValue {
    init(node: Node) throws(ConfigurationFaults) {
        guard let number = node.scalar.flatMap({ Double($0.string) }) else {
            throw ConfigurationFaults(node, "expected a number\(YAMLSource.butFound(node))")
        }
        self = number
    }

    init(variable: String) throws(ConfigurationFaults) {
        guard let number = Double(variable) else { throw ConfigurationFaults(nil, "\"\(variable)\" is not a number") }
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
            throw ConfigurationFaults(node, "expected a list of strings\(YAMLSource.butFound(node))")
        }
        self = []
        for element in sequence { self.append(try String(node: element)) }
    }

    /// Commas separate the elements. An empty variable is an empty list, not a list with an empty text.
    init(variable: String) {
        let elements = variable.split(separator: ",", omittingEmptySubsequences: false)
            .map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }
        self = elements == [""] ? [] : elements
    }
}

/// A list of rate policies such as `180/60s:60`: a sequence in the file, comma-separated in a variable.
struct RatePolicyList: ConfigurationValue {
    private(set) var policies: [RatePolicy] = []

    init(node: Node) throws(ConfigurationFaults) {
        guard case .sequence(let sequence) = node else {
            throw ConfigurationFaults(node, "expected a list of policies such as [180/60s:60]")
        }
        var faults: [(line: Int?, message: String)] = []
        for (index, element) in sequence.enumerated() {
            do throws(RatePolicy.Problem) {
                self.policies.append(try RatePolicy(parsing: element.scalar?.string ?? ""))
            } catch {
                faults.append((element.mark?.line, "policy \(index + 1): \(error)"))
            }
        }
        guard faults.isEmpty else { throw ConfigurationFaults(faults) }
        guard (1...LimitPolicies.maxPoliciesPerScope).contains(sequence.count) else {
            throw ConfigurationFaults(node, "must hold one to \(LimitPolicies.maxPoliciesPerScope) policies")
        }
    }

    init(variable: String) throws(ConfigurationFaults) {
        let texts = [String](variable: variable)
        try self.init(node: Node(texts.map { Node($0) }))
    }
}
