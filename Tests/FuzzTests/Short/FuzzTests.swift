import GatewayTestKit
import Testing

@Suite("Parsers of untrusted bytes", .timeLimit(.minutes(10)))
struct FuzzTests {
    private static let mutations = 2_000

    @Test("Every committed input satisfies the properties of its target", arguments: FuzzTarget.all)
    func keptInputs(target: FuzzTarget) throws {
        let inputs = try Corpus.inputs(of: target)
        #expect(!inputs.isEmpty)
        for input in inputs {
            let finding = Self.finding(target, input.bytes)
            #expect(finding == nil, "\(target.name)/\(input.name)")
        }
    }

    @Test("Random mutations of the inputs satisfy the properties of their target", arguments: FuzzTarget.all)
    func bentInputs(target: FuzzTarget) async throws {
        let inputs = try Corpus.inputs(of: target).map(\.bytes)
        var mutator = InputMutator(
            inputs,
            words: target.words,
            maxBytes: target.maxBytes,
            seed: SeededGenerator.seed(of: target.name)
        )
        for number in 0..<Self.mutations {
            // Lets other tests run.
            if number.isMultiple(of: 20) { await Task.yield() }
            let input = mutator.next()
            let finding = Self.finding(target, input)
            #expect(finding == nil, "\(input)")
        }
    }

    @Test("The public JSON test suite satisfies StrictJSON's properties", .enabled(if: JSONTestSuiteFiles.areThere))
    func jsonTestSuite() throws {
        let target = try #require(FuzzTarget.named("strict-json"))
        for file in try JSONTestSuiteFiles.all() where file.bytes.count <= target.maxBytes {
            let finding = Self.finding(target, file.bytes)
            #expect(finding == nil, "\(file.name)")
        }
    }

    @Test("Random mutations find a planted fault and report it")
    func plantedFault() {
        let target = FuzzTarget("planted", maxBytes: 64, words: ["ac", "{"]) { input throws(FuzzFinding) in
            try FuzzFinding.require(!input.starts(with: Array("{ac".utf8)), "the fault")
        }
        var mutator = InputMutator([Array("a{bc".utf8)], words: target.words, maxBytes: 64, seed: 1)
        var finding: FuzzFinding?
        for _ in 0..<10_000 where finding == nil { finding = Self.finding(target, mutator.next()) }
        #expect(finding?.description == "the fault")
    }

    @Test("The same seed gives the same mutations, within the size limit")
    func mutationsRepeat() {
        let inputs = [Array("abc".utf8), []]
        var first = InputMutator(inputs, words: ["word"], maxBytes: 7, seed: 3)
        var second = InputMutator(inputs, words: ["word"], maxBytes: 7, seed: 3)
        var seen: Set<[UInt8]> = []
        for _ in 0..<200 {
            let input = first.next()
            #expect(input == second.next())
            #expect(input.count <= 7)
            seen.insert(input)
        }
        #expect(seen.count > 100)
    }

    @Test("The committed inputs are few and small, and each folder belongs to a target")
    func corpusIsSmall() throws {
        #expect(try Corpus.names == FuzzTarget.all.map(\.name).sorted())
        var byteCount = 0
        for target in FuzzTarget.all {
            let inputs = try Corpus.inputs(of: target)
            #expect(inputs.count <= Corpus.maxFiles)
            #expect(Set(inputs.map(\.bytes)).count == inputs.count)
            byteCount += inputs.reduce(0) { $0 + $1.bytes.count }
        }
        #expect(byteCount <= Corpus.maxBytes)
    }

    private static func finding(_ target: FuzzTarget, _ input: [UInt8]) -> FuzzFinding? {
        do {
            try target.check(input)
            return nil
        } catch {
            return error
        }
    }
}
