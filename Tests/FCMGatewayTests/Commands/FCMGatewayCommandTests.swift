import ArgumentParser
import GatewayTestKit
import Testing

@testable import FCMGateway
@testable import GatewayService

struct FCMGatewayCommandTests {
    private static func exitCode(_ arguments: [String]) -> Int32? {
        do {
            _ = try FCMGatewayCommand.parseAsRoot(arguments)
            return nil
        } catch {
            return FCMGatewayCommand.exitCode(for: error).rawValue
        }
    }

    /// All verbs except hidden ones, which have no help.
    private static func verbs(of command: any ParsableCommand.Type) -> [any ParsableCommand.Type] {
        let below = command.configuration.subcommands.filter { $0.configuration.shouldDisplay }
        return below.isEmpty ? [command] : below.flatMap { Self.verbs(of: $0) }
    }

    @Test("Each verb's help is at most 80 columns wide and has a valid example")
    func help() throws {
        let verbs = Self.verbs(of: FCMGatewayCommand.self)
        #expect(verbs.count > 35)
        for verb in verbs {
            let message = FCMGatewayCommand.helpMessage(for: verb, columns: FCMGatewayCommand.helpWidth)
            let help = FCMGatewayCommand.wrapped(message)
            let name = "\(verb)"
            for line in help.split(separator: "\n") {
                #expect(line.count <= FCMGatewayCommand.helpWidth, "\(name): \(line)")
            }
            let example = help.split(separator: "Example:").dropFirst().first?.split(separator: "\n\n").first
            let words = try #require(example?.split(separator: "fcm-gateway ").last, "\(name) has no example")
            let arguments = words.prefix { $0 != ")" && $0 != ">" }.split(whereSeparator: \.isWhitespace)
                .map(String.init)
            #expect(Self.exitCode(arguments) == nil, "\(name): \(arguments)")
            let command = try? FCMGatewayCommand.parseAsRoot(arguments)
            #expect(command.map { "\(type(of: $0))" } == "\(verb)", "\(name): \(arguments)")
        }
    }

    @Test("The help of each group is at most 80 columns wide, and the root's lists every exit code")
    func groupHelp() {
        func groups(_ command: any ParsableCommand.Type) -> [any ParsableCommand.Type] {
            let below = command.configuration.subcommands.filter { $0.configuration.shouldDisplay }
            return below.isEmpty ? [] : [command] + below.flatMap(groups)
        }
        for group in groups(FCMGatewayCommand.self) {
            let message = FCMGatewayCommand.helpMessage(for: group, columns: FCMGatewayCommand.helpWidth)
            for line in FCMGatewayCommand.wrapped(message).split(separator: "\n") {
                #expect(line.count <= FCMGatewayCommand.helpWidth, "\(group): \(line)")
            }
        }
        let root = FCMGatewayCommand.helpMessage(columns: FCMGatewayCommand.helpWidth)
        let codes = root.split(separator: "Exit codes:").last?.split(separator: "\n\n").first ?? ""
        for code in ["0", "1", "2", "64", "66", "128"] {
            #expect(codes.contains(" \(code)") || codes.contains("\n\(code)"), "\(code): \(codes)")
        }
    }

    @Test(
        "Valid usage is accepted",
        arguments: [
            "health", "health --config g.yaml --live --wait 30s", "health --admin-url http://gw:8081 --output json",
            "tenant list --limit 3 --output json", "tenant get demo",
            "tenant put demo --display-name Demo --upstream v1 --project-id p --sender-id 1 --disabled",
            "tenant delete demo --admin-url http://gw:8081 --admin-token-file /t",
            "credential put demo legacy --server-key-file - --endpoint http://localhost:8085", "credential get demo",
            "credential put demo v1 --service-account-file /a.json", "credential get demo v1", "credential check demo",
            "explain demo", "explain demo body.json --form legacy --key-file /k --url http://gw --output json",
            "key create demo --scope messages:send --scope audit:read --topic-prefix a --expires-at 2030-01-01T00:00:00Z",
            "key list demo", "key rotate demo abc --overlap 15m", "key revoke demo abc", "credential rewrap",
            "credential rewrap --config g.yaml --output json",
            "limit get demo", "limit put demo --device 180/60s:60 --device 4000/1h:1000 --tenant 9000/1s:9000",
            "limit put demo --file -", "limit put demo --defaults", "limit set demo --topic 1/1s:1",
            "limit reset demo topic",
            "tenant set demo --reset upstream", "tenant enable demo", "tenant disable demo",
            "credential delete demo v1 --yes",
            "send demo --fid f --collapse-key k --image https://a/b.png --mutable-content",
            "send demo --device-group g",
            "key create demo --scope audit:read --expires-in 90d",
            "send demo --token t --title T --body B --data a=b --data c=d=e --priority high --ttl 1h --dry-run",
            "retired-token delete demo t", "retired-token delete demo f --fid --key-file - --output json",
            "send demo --file -", "send demo --topic news --key-file /k --url http://gw",
            "audit tail -n 5 -f --tenant demo",
            "audit query --from 2026-01-01T00:00:00Z --outcome rejected --limit 1000",
            "audit export", "audit export --config g.yaml", "audit export --data-dir d",
            "audit verify", "audit verify --config g.yaml --data-dir d", "audit verify --output json --no-progress",
            "audit verify --public-key 3q2+7wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            "audit verify --sink a.jsonl.1 --sink a.jsonl", "audit verify --sink-only --sink a.jsonl",
            "audit intents --data-dir d", "audit pseudonym demo --topic news",
            "audit pseudonym demo --token-file - --config g.yaml", "audit pseudonym demo --topic news --data-dir d",
            "audit public-key --output json", "audit public-key --config g.yaml", "completion install zsh",
            "audit public-key --data-dir d",
            "config check", "config show --config g.yaml --output json", "config check --output json",
            "tenant apply -f t.yaml", "tenant apply --file t.yaml --dry-run --output json --progress",
            "tenant apply -f t.yaml --prune --yes --no-progress", "key generate", "key generate --output json",
            "key create demo --scope audit:read --key-file -", "audit verify --progress --output json",
            "store copy --from sqlite:a/gateway.sqlite --to postgres://u@h/d?sslmode=verify-full --no-progress --output json",
            "store copy --from sqlite:/b.sqlite --to postgresql:///d --dry-run --config g.yaml",
            "credential rewrap --no-progress", "store migrate --config g.yaml --output json", "doctor",
            "doctor --config g.yaml --output json --offline --thorough",
        ]
    )
    func accepted(line: String) {
        #expect(Self.exitCode(line.split(separator: " ").map(String.init)) == nil)
    }

    @Test(
        "Wrong usage exits with 64",
        arguments: [
            "health --wait 30", "health --admin-url gw", "health /readyz",
            "store copy", "store copy --from sqlite:a", "store copy --from sqlite:a --to sqlite:b",
            "store copy --from postgres://u@h/d --to sqlite:a", "store copy --from a --to postgres://u@h/d",
            "store copy --from sqlite:a --to postgres://u:secret@h/d",
            "nonsense", "tenant get", "tenant get Demo", "tenant put demo --upstream v2", "tenant list --limit 0",
            "tenant list --output xml", "tenant get demo --admin-url nowhere", "credential put demo legacy",
            "credential put demo legacy --server-key AAAA", "credential put demo v1 --server-key-file -",
            "credential put demo v1", "credential put demo legacy --service-account-file a",
            "retired-token delete demo", "retired-token delete demo a b",
            "explain", "explain demo a b", "explain demo --form soap",
            "key create demo", "key create demo --scope a",
            "key create demo --scope audit:read --expires-at tomorrow", "key rotate demo abc --overlap 15",
            "limit put demo", "limit set demo", "limit reset demo", "limit reset demo all", "tenant set demo",
            "key create demo --scope audit:read --expires-in 9", "send demo --fid f --topic t",
            "key create demo --scope audit:read --expires-in 9d --expires-at 2030-01-01T00:00:00Z",
            "limit put demo --device 180/60", "limit put demo --defaults --device 180/60s:60",
            "send demo", "send demo --token t --topic n", "send demo --file f --dry-run",
            "send demo --file f --token t",
            "send demo --token t --data novalue", "send demo --token t --data a=1 --data a=2",
            "send demo --token t --ttl 29d", "send demo --token t --ttl 60", "send demo --token t --priority urgent",
            "tenant put demo --client-name *.b", "tenant apply", "tenant apply -f t.yaml --yes", "doctor --output xml",
            "doctor g.yaml", "key generate demo",
            "audit tail -n 0", "audit query --from yesterday",
            "audit export --tenant demo", "audit pseudonym demo", "audit pseudonym",
            "audit pseudonym demo --token secret", "audit pseudonym demo --topic a --token-file b",
            "audit pseudonym Demo --topic a", "audit export demo",
            "audit verify --sink-only", "audit verify --public-key none", "audit verify --export e",
            "audit verify demo", "audit public-key demo", "completion install tcsh",
            "audit intents demo",
            "config check --config", "init --certificate a", "init --private-key a", "init --tenant shop",
            "init --fcm-ca-file a", "init --test-certificate 10.0.0.1",
            "init --certificate a --private-key b --test-certificate localhost",
            // Verbs of fcm-gateway-dev.
            "dev", "dev --port 0", "emulator", "emulator --tls-dir d",
        ]
    )
    func refused(line: String) {
        #expect(Self.exitCode(line.split(separator: " ").map(String.init)) == 64)
    }

    @Test("Help and version exit with 0", arguments: [["--version"], ["--help"], ["key", "create", "--help"]])
    func help(arguments: [String]) {
        // Running the help command throws its text; parsing throws the version.
        let error = #expect(throws: (any Error).self) {
            var command = try FCMGatewayCommand.parseAsRoot(arguments)
            try command.run()
        }
        #expect(error.map { FCMGatewayCommand.exitCode(for: $0) } == .success)
    }

    @Test("A refusal and a failure exit with 1, a missing token with 64")
    func failures() throws {
        let refusal = APIError(status: 404, requestID: nil, problem: nil)
        #expect(FCMGatewayCommand.exitCode(for: refusal) == .failure)
        #expect(FCMGatewayCommand.exitCode(for: CommandFailure("x")) == .failure)
        let command = try #require(try FCMGatewayCommand.parseAsRoot(["tenant", "list"]) as? TenantCommand.List)
        let error = #expect(throws: ValidationError.self) { try command.admin.token(environment: [:]) }
        #expect(FCMGatewayCommand.exitCode(for: try #require(error)) == .validationFailure)
    }

    @Test("The token comes from the option's file, then from the environment")
    func token() async throws {
        try await TemporaryDirectory.with { directory in
            let file = try directory.file("t", "from-the-option\n")
            let other = try directory.file("o", "from-the-file\n")
            let plain = try AdminOptions.parse([])
            let option = try AdminOptions.parse(["--admin-token-file", file])
            let environment = ["GATEWAY_ADMIN_TOKEN": "from-the-variable"]
            #expect(try option.token(environment: environment).revealed == "from-the-option")
            #expect(try plain.token(environment: environment).revealed == "from-the-variable")
            #expect(try plain.token(environment: ["GATEWAY_ADMIN_TOKEN_FILE": other]).revealed == "from-the-file")
            #expect(throws: CommandFailure.self) {
                try plain.token(environment: ["GATEWAY_ADMIN_TOKEN": "a", "GATEWAY_ADMIN_TOKEN_FILE": other])
            }
            #expect(throws: CommandFailure.self) { try plain.token(environment: ["GATEWAY_ADMIN_TOKEN": "a\nb"]) }
        }
    }

    @Test("The address comes from the option, then from the environment, then from the default")
    func address() throws {
        let plain = try AdminOptions.parse([])
        let option = try AdminOptions.parse(["--admin-url", "http://a:1/"])
        #expect(try plain.baseURL(environment: [:]).text == "http://127.0.0.1:8081")
        #expect(try plain.baseURL(environment: ["GATEWAY_ADMIN_URL": "https://b"]).text == "https://b")
        #expect(try option.baseURL(environment: ["GATEWAY_ADMIN_URL": "https://b"]).text == "http://a:1")
        #expect(throws: ValidationError.self) { try plain.baseURL(environment: ["GATEWAY_ADMIN_URL": "b"]) }
    }

    @Test(
        "An unknown verb or group is answered with the nearest known one, if any",
        arguments: [
            ("tenants list", "tenants; did you mean tenant?"), ("tenant sett x", "sett; did you mean set?"),
            ("tenant list x", ""), ("--foo", ""), ("qqqqqq", ""),
            ("audit\u{1B} tail", "audit\\u{1b}; did you mean audit?"),
        ]
    )
    func nearestVerb(line: String, hint: String) {
        let words = line.split(separator: " ").map(String.init)
        let text = FCMGatewayCommand.hint(for: ["fcm-gateway"] + words)
        #expect(text.trimmingPrefix { $0.isWhitespace } == hint)
    }

    @Test("Completions are installed where each shell looks for them")
    func completions() {
        let environment = ["HOME": "/h", "SHELL": "/usr/bin/zsh"]
        #expect(CompletionCommand.Shell(environment: environment) == .zsh)
        #expect(CompletionCommand.Shell(environment: [:]) == nil)
        let places = CompletionCommand.Shell.allCases.map {
            "\($0.directory(isRoot: false, environment).path)/\($0.fileName)"
        }
        #expect(
            places == [
                "/h/.local/share/bash-completion/completions/fcm-gateway",
                "/h/.local/share/zsh/site-functions/_fcm-gateway", "/h/.config/fish/completions/fcm-gateway.fish",
            ]
        )
    }
}
