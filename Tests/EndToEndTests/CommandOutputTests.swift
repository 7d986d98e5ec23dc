import Foundation
import GatewayTestKit
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("Command output")
    struct CommandOutputTests {
        private static func json(_ text: String) -> JSON? { try? JSON(parsing: text) }

        @Test("Every verb that prints supports --output json and writes only JSON to standard output")
        func json() async throws {
            try await PrivateDirectory.with { directory in
                let data = directory.path("data")
                let body = try directory.write(#"{"token": "t"}"#, to: "body.json")
                let file = try directory.write("tenants: []\n", to: "t.yaml")
                try await DevGateway.with(data) { dev in
                    func run(_ line: String, input: String = "") async throws -> Program.Outcome {
                        let arguments = line.split(separator: " ").map(String.init) + ["--output", "json"]
                        let environment = dev.environment.merging(["XDG_DATA_HOME": directory.path("share")]) { $1 }
                        return try await Program.gateway(arguments, environment: environment, input: input)
                    }
                    for (line, member) in [
                        ("tenant put late --display-name Late", "tenant"), ("tenant list", "tenants"),
                        ("tenant get late", "tenant"), ("tenant apply -f \(file)", "changes"),
                        ("tenant apply -f \(file) --dry-run", "changes"), ("tenant set late --upstream v1", "upstream"),
                        ("tenant disable late", "disabled"), ("tenant enable late", "disabled"),
                        ("tenant delete late --yes", "deleted"),
                        ("credential get demo", "fingerprint"), ("key create demo --scope messages:send", "key"),
                        ("key list demo", "keys"), ("key generate", "key"), ("limit put demo --defaults", "device"),
                        ("limit set demo --topic 9/1s:9", "topic"), ("limit reset demo topic", "topic"),
                        ("limit get demo", "own"), ("explain demo \(body)", "requests"),
                        ("send demo --token t", "status"), ("tenant diff \(file)", "changes"),
                        ("completion install bash", "file"), ("audit query --limit 1", "action"),
                        ("audit tail -n 1", "action"), ("audit public-key --data-dir \(data)", "public_key"),
                        ("audit pseudonym demo --topic t --data-dir \(data)", "pseudonyms"),
                        ("audit verify --data-dir \(data)", "verdict"),
                        ("doctor --offline", "findings"), ("config check", "valid"),
                        ("config show", "settings"),
                    ] {
                        let outcome = try await run(line)
                        #expect(outcome.json[member] != nil, "\(line): \(outcome.text)")
                        #expect(!outcome.output.contains("\u{1B}"))
                    }
                    #expect(try await run("credential check demo").json["checks"] != nil)
                    // Last, because nothing can be sent with this key.
                    let put = try await run("credential put demo legacy --server-key-file -", input: "the-server-key")
                    #expect(put.json["fingerprint"] != nil)
                    #expect(try await run("credential delete demo legacy --yes").json["deleted"] == true)

                    let made = try await run("key create demo --scope audit:read").json["id"]?.text ?? "none"
                    #expect(try await run("key rotate demo \(made)").json["key"] != nil)
                    #expect(try await run("key revoke demo \(made)").json["revoked"] == true)
                    try await dev.gateway.stopInOrder()
                }
                let key = try directory.text("data/master.key")
                let stopped = ["GATEWAY_DATA_DIR": data, "GATEWAY_MASTER_KEY": key]
                let rewrap = ["credential", "rewrap", "--output", "json"]
                let rewrapped = try await Program.gateway(rewrap, environment: stopped)
                #expect(rewrapped.json["moved"] == 0, "\(rewrapped.errors)")
            }
        }

        @Test("With --output json a failure is a problem object on standard error")
        func failures() async throws {
            try await PrivateDirectory.with { directory in
                let bad = try directory.write("log: {levl: info}\n", to: "g.yaml")
                try await DevGateway.with(directory.path("data")) { dev in
                    let good = dev.gateway.adminEnvironment
                    let stranger = good.merging(["GATEWAY_ADMIN_TOKEN": "another-token-than-its"]) { $1 }
                    let nowhere = good.merging(["GATEWAY_ADMIN_URL": "http://127.0.0.1:1"]) { $1 }
                    for (line, environment, code, exit) in [
                        ("tenant get nobody", good, "not_found", 1), ("tenant list", stranger, "unauthenticated", 1),
                        ("tenant list", nowhere, "command_failed", 1), ("tenant list", [:], "usage", 64),
                        ("tenant get", good, "usage", 64), ("tenant lst", good, "usage", 64),
                        ("config show --config \(bad)", [:], "invalid_configuration", 1),
                        ("audit verify --config \(bad)", [:], "invalid_configuration", 66),
                        ("audit verify --data-dir \(directory.path("none"))", [:], "not_found", 66),
                        ("credential rewrap", [:], "invalid_configuration", 1),
                        ("key create demo --scope audit:read --key-file \(bad)", good, "command_failed", 1),
                    ] as [(String, [String: String], String, Int32)] {
                        let arguments = line.split(separator: " ").map(String.init) + ["--output", "json"]
                        let outcome = try await Program.gateway(arguments, environment: environment).expect(exit, line)
                        #expect(outcome.output.isEmpty, "\(line)")
                        let problem = Self.json(outcome.errors)
                        #expect(problem?["code"]?.text == code, "\(line): \(outcome.errors)")
                        #expect(problem?["detail"]?.text?.isEmpty == false)
                    }
                    let check = ["config", "check", "--config", bad, "--output", "json"]
                    let problem = try await Program.gateway(check).expect(1).json["problems"]?.elements.first
                    #expect(problem?["line"] == 1 && problem?["key"]?.text == "log.levl")

                    let refused = try await Program.gateway(["credential", "check", "demo"], environment: stranger)
                    #expect(refused.end == .code(1))
                    #expect(refused.errors.contains("The admin token from the environment is not this gateway's"))
                    let silent = try await Program.gateway(["credential", "check", "demo"], environment: nowhere)
                    #expect(silent.end == .code(1))
                    #expect(silent.errors.contains("no answer from http://127.0.0.1:1: the connection was refused"))
                    #expect(silent.errors.contains("--admin-url or GATEWAY_ADMIN_URL"))
                    try await dev.gateway.stopInOrder()
                }
            }
        }

        @Test("An answer that can't be written fails the verb, which says how to revoke or replace a lost key")
        func unwritable() async throws {
            let shell = URL(filePath: "/bin/sh")
            let program = try Program.gateway().path
            try await PrivateDirectory.with { directory in
                let data = directory.path("data")
                let file = try directory.write(
                    "tenants:\n  - {tenant: shop, keys: [{name: n, scopes: [audit:read]}, {name: m, scopes: [audit:read]}]}",
                    to: "t.yaml"
                )
                try await DevGateway.with(data) { dev in
                    func run(_ script: String) async throws -> Program.Outcome {
                        try await Program.run(shell, ["-c", script, program], environment: dev.environment)
                    }
                    let revoke = "fcm-gateway key revoke"
                    // The tenant exists, so that the first change creates a key.
                    #expect(try await dev.gateway.admin("PUT", "tenants/shop", "{}").status == 201)
                    for (line, words) in [
                        ("key generate", "create another"), ("key generate --output json", "create another"),
                        ("key create demo --scope audit:read", "\(revoke) demo "),
                        ("key create demo --scope audit:read --output json", "\(revoke) demo "),
                        ("tenant apply -f \(file)", "\(revoke) shop "), ("tenant list", "No space left"),
                        ("config show", "No space left"), ("send demo --token t", "No space left"),
                        ("doctor --offline", "No space left"),
                    ] {
                        let full = try await run("exec \"$0\" \(line) > /dev/full").expect(1, "\(line)")
                        #expect(full.errors.contains("can't be written to standard output"), "\(line): \(full.errors)")
                        #expect(full.errors.contains(words), "\(line): \(full.errors)")
                    }
                    let keys = try await dev.gateway.admin("GET", "tenants/shop/keys").json["keys"]?.elements
                    #expect(keys?.count == 1, "apply stops at the first key that it can't print")
                    #expect(try await dev.gateway.admin("DELETE", "tenants/shop").status == 204)
                    let json = try await run("exec \"$0\" tenant apply -f \(file) --output json > /dev/full").expect(1)
                    let detail = Self.json(json.errors)?["detail"]?.text ?? ""
                    #expect(detail.matches(of: #/fcm-gateway key revoke shop \w+/#).count == 2, "\(json.errors)")

                    // A closed pipe fails the verbs that print a key, but not a list.
                    let pipe = directory.path("pipe")
                    for (line, code) in [
                        ("tenant list", 0), ("key generate", 1), ("key create demo --scope audit:read", 1),
                    ] {
                        let outcome = try await run(
                            #"rm -f \#(pipe); mkfifo \#(pipe) && exec 3<>\#(pipe) 4>\#(pipe) 3<&- && exec "$0" \#(line) >&4"#
                        )
                        #expect(outcome.end == .code(Int32(code)), "\(line): \(outcome.errors)")
                        #expect(outcome.errors.contains("Broken pipe") == (code == 1), "\(line): \(outcome.errors)")
                    }
                    try await dev.gateway.stopInOrder()
                }
                // Exit code 1 would mean a changed audit.
                let verify = "exec \"$0\" audit verify --data-dir \(data) > /dev/full"
                let outcome = try await Program.run(shell, ["-c", verify, program]).expect(66)
                #expect(outcome.errors.contains("No space left"))
            }
        }

        @Test(
            "A terminal gets a prompt, colours and in-place progress; a pipe gets plain lines",
            .enabled(if: Program.named("script") != nil, "script is needed")
        )
        func terminal() async throws {
            let script = try #require(Program.named("script"))
            let program = try Program.gateway().path
            try await PrivateDirectory.with { directory in
                let data = directory.path("data")
                try await DevGateway.with(data) { dev in
                    _ = try await dev.send(#"{"token": "t"}"#)
                    // On a terminal the verb asks, and deletes only after yes.
                    for (answer, status) in [("no", 200), ("yes", 404)] {
                        let arguments = ["-qec", "\(program) tenant delete demo", "/dev/null"]
                        let environment = dev.environment
                        let outcome = try await Program.run(
                            script,
                            arguments,
                            environment: environment,
                            input: answer + "\n"
                        )
                        #expect(outcome.output.contains("Type yes: "), "\(outcome.text)")
                        #expect(outcome.output.contains("nothing was changed") == (answer == "no"), "\(outcome.text)")
                        #expect(try await dev.gateway.admin("GET", "tenants/demo").status == status)
                    }
                    try await dev.gateway.stopInOrder()
                }
                let verify = "audit verify --data-dir \(data)"
                let environment = ["TERM": "xterm"]
                func onTerminal(_ line: String) async throws -> String {
                    let arguments = ["-qec", "\(program) \(line)", "/dev/null"]
                    return try await Program.run(script, arguments, environment: environment).output
                }
                let shown = try await onTerminal(verify)
                #expect(shown.contains("\u{1B}[32mintact\u{1B}[0m"), "\(shown)")
                #expect(shown.contains("\r\u{1B}[Kaudit records: 0 of "), "\(shown)")
                #expect(shown.contains("(100 %)\r\u{1B}[K"), "\(shown)")
                let quiet = try await onTerminal("\(verify) --no-progress")
                #expect(!quiet.contains("audit records"))

                func piped(_ arguments: String) async throws -> Program.Outcome {
                    try await Program.gateway(
                        arguments.split(separator: " ").map(String.init),
                        environment: environment
                    )
                }
                let plain = try await piped(verify)
                #expect(!plain.output.contains("\u{1B}") && !plain.errors.contains("audit records"))
                let asked = try await piped("\(verify) --progress")
                #expect(asked.errors.contains("audit records: 0 of ") && asked.errors.contains("(100 %)\n"))
                #expect(!asked.errors.contains("\r") && !asked.output.contains("audit records"))
            }
        }

        @Test(
            "The bash completion offers verbs, options and values; zsh and fish scripts are generated",
            .enabled(if: Program.named("bash") != nil, "bash is needed")
        )
        func completion() async throws {
            let bash = try #require(Program.named("bash"))
            try await PrivateDirectory.with { directory in
                for shell in ["zsh", "fish"] {
                    let outcome = try await Program.gateway(["--generate-completion-script", shell])
                    #expect(outcome.end == .code(0) && outcome.output.contains("doctor"))
                }
                let generated = try await Program.gateway(["--generate-completion-script", "bash"]).expect(0)
                let file = try directory.write(generated.output, to: "completion.bash")
                let program = try Program.gateway().deletingLastPathComponent().path
                // Does what bash does when Tab is pressed after the words.
                let script = #"""
                    PATH="$2:$PATH"
                    source "$1"
                    shift 2
                    specification=$(complete -p fcm-gateway)
                    completer=$(sed -E 's/.* -F ([^ ]+) .*/\1/' <<<"$specification")
                    COMP_WORDS=(fcm-gateway "$@")
                    COMP_CWORD=$#
                    COMP_LINE="fcm-gateway $*"
                    COMP_POINT=${#COMP_LINE}
                    COMP_TYPE=9
                    "$completer" fcm-gateway "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}" 2>/dev/null
                    printf '%s\n' "${COMPREPLY[@]}"
                    """#
                for (words, expected) in [
                    (["doc"], "doctor"), (["tenant", "ap"], "apply"), (["tenant", "apply", "--dr"], "--dry-run"),
                    (["key", "gen"], "generate"), (["tenant", "list", "--output", "j"], "json"),
                    (["credential", "put", "demo", "le"], "legacy"), (["audit", "verify", "--prog"], "--progress"),
                    (["key", "create", "demo", "--scope", "mess"], "messages:send"),
                ] {
                    let arguments = ["--noprofile", "--norc", "-c", script, "bash", file, program] + words
                    let outcome = try await Program.run(bash, arguments)
                    let offered = outcome.output.split(separator: "\n")
                        .map { $0.trimmingCharacters(in: .whitespaces) }
                    #expect(offered.contains(expected), "\(words): \(outcome.output)\(outcome.errors)")
                }
            }
        }
    }
}
