import Foundation
import Yams

/// A list of rate policies as it is being read, with what is wrong with it.
///
/// The file's nodes and an environment variable's JSON text take the same path: JSON is read as the YAML it also is,
/// so both refuse unknown, repeated and missing members alike.
struct RatePolicyList {
    /// One thing wrong with the list.
    struct Problem {
        /// The line within the text read, from 1.
        var line: Int?
        /// What is wrong.
        var message: String
    }

    /// The policies that could be read.
    private(set) var policies: [RatePolicyConfiguration] = []

    /// Everything wrong with the list; empty for a good one.
    private(set) var problems: [Problem] = []

    /// Reads a sequence of `{rate, perS, burst}` mappings.
    init(node: Node) {
        guard case .sequence(let sequence) = node else {
            self.problems = [Problem(line: node.mark?.line, message: "expected a list of {rate, perS, burst}")]
            return
        }
        if sequence.isEmpty {
            self.problems = [Problem(line: node.mark?.line, message: "must hold at least one policy")]
        }
        for (index, element) in sequence.enumerated() {
            self.append(element, position: index + 1)
        }
    }

    /// Reads JSON text, as an environment variable or the file's canonical form holds it.
    init(json: String) {
        if (try? JSONSerialization.jsonObject(with: Data(json.utf8))) is [Any], let node = try? Yams.compose(yaml: json)
        {
            self.init(node: node)
        } else {
            self.init(
                problem: Problem(
                    line: nil,
                    message: #"expected a JSON list such as [{"rate":180,"perS":60,"burst":60}]"#
                )
            )
        }
    }

    private init(problem: Problem) {
        self.problems = [problem]
    }

    /// The canonical JSON text of policies: one line, members sorted.
    static func json(_ policies: [RatePolicyConfiguration]) -> String {
        let objects = policies.map { #"{"burst":\#($0.burst),"perS":\#($0.perS),"rate":\#($0.rate)}"# }
        return "[\(objects.joined(separator: ","))]"
    }

    private mutating func append(_ node: Node, position: Int) {
        guard case .mapping(let mapping) = node else {
            self.add(node, position, "expected {rate, perS, burst}")
            return
        }
        var numbers: [String: Int] = [:]
        for (key, value) in mapping {
            let name = key.scalar?.string ?? "?"
            guard ["rate", "perS", "burst"].contains(name) else {
                self.add(key, position, "\"\(name)\" is not known; a policy has rate, perS and burst")
                continue
            }
            guard let number = WholeNumberNode.value(value) else {
                self.add(value, position, "\(name) must be a whole number")
                continue
            }
            numbers[name] = number
        }
        let missing: [String] = ["rate", "perS", "burst"]
            .filter { name in
                !mapping.contains { $0.key.scalar?.string == name }
            }
        guard missing.isEmpty else {
            self.add(node, position, "\(missing.joined(separator: ", ")) missing")
            return
        }
        guard let rate = numbers["rate"], let perS = numbers["perS"], let burst = numbers["burst"] else { return }
        let policy = RatePolicyConfiguration(rate: rate, perS: perS, burst: burst)
        if let problem = policy.rangeProblem {
            self.add(node, position, problem)
        } else {
            self.policies.append(policy)
        }
    }

    private mutating func add(_ node: Node, _ position: Int, _ message: String) {
        self.problems.append(Problem(line: node.mark?.line, message: "policy \(position): \(message)"))
    }
}
