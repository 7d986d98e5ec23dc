// The program that libFuzzer drives: `Fuzz TARGET` and libFuzzer's own arguments; see Tests/FuzzTests/run.

import Foundation

func stop(_ message: String) -> Never {
    FileHandle.standardError.write(Data((message + "\n").utf8))
    exit(2)
}

let arguments = CommandLine.arguments
switch arguments.dropFirst().first {
case "list":
    print(FuzzTarget.all.map { "\($0.name) \($0.maxBytes)" }.joined(separator: "\n"))
case "words":
    guard let target = arguments.dropFirst(2).first.flatMap(FuzzTarget.named) else { stop("Fuzz words TARGET") }
    print(LibFuzzer.dictionary(of: target), terminator: "")
case "repeat":
    guard arguments.count == 5, let target = FuzzTarget.named(arguments[2]), let rounds = Int(arguments[4]) else {
        stop("Fuzz repeat TARGET FOLDER ROUNDS")
    }
    print(try Repetition.growth(of: target, inputs: arguments[3], rounds: rounds))
default:
    guard let target = arguments.dropFirst().first.flatMap(FuzzTarget.named) else {
        stop("Fuzz list | words TARGET | repeat TARGET FOLDER ROUNDS | TARGET [libFuzzer's arguments]")
    }
    exit(LibFuzzer.run(target, arguments: Array(arguments.dropFirst(2))))
}
