import GatewayTestKit

/// Mutates inputs at random; the same seed gives the same mutations.
struct InputMutator {
    private let inputs: [[UInt8]]
    private let words: [[UInt8]]
    private let maxBytes: Int
    private var generator: SeededGenerator

    init(_ inputs: [[UInt8]], words: [String], maxBytes: Int, seed: UInt64) {
        precondition(!inputs.isEmpty, "there is nothing to bend")
        self.inputs = inputs
        self.words = words.map { Array($0.utf8) }
        self.maxBytes = maxBytes
        self.generator = SeededGenerator(seed: seed)
    }

    /// Returns one of the inputs with one to six changes.
    mutating func next() -> [UInt8] {
        var input = self.pick(self.inputs)
        for _ in 0...Int.random(in: 0..<6, using: &self.generator) {
            self.change(&input)
        }
        return Array(input.prefix(self.maxBytes))
    }

    private mutating func change(_ input: inout [UInt8]) {
        let start = Int.random(in: 0...input.count, using: &self.generator)
        let end = min(input.count, start + Int.random(in: 0...8, using: &self.generator))
        switch Int.random(in: 0..<7, using: &self.generator) {
        case 0:
            input.removeSubrange(start..<end)
        case 1:
            input.insert(contentsOf: input[start..<end], at: start)
        case 2 where start < input.count:
            input[start] ^= 1 << UInt8.random(in: 0..<8, using: &self.generator)
        case 3 where start < input.count:
            input[start] = UInt8.random(in: 0...255, using: &self.generator)
        case 4:
            // Joins the beginning of one input and the end of another.
            let other = self.pick(self.inputs)
            input.replaceSubrange(
                start...,
                with: other.dropFirst(Int.random(in: 0...other.count, using: &self.generator))
            )
        case 5:
            input.replaceSubrange(start..<end, with: self.pick(self.words))
        default:
            input.insert(contentsOf: self.pick(self.words), at: start)
        }
    }

    private mutating func pick(_ values: [[UInt8]]) -> [UInt8] {
        values.randomElement(using: &self.generator) ?? []
    }
}
