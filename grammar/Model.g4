// The grammar of .model files, version 1 of the language. Line breaks mean nothing. README.md shows it by example.
//
// The parser is generated when the program is built (frontend/syntax/CMakeLists.txt) and walked in frontend/syntax.
// Rules are named as the structs of frontend/syntax/ast*.h; a label names an alternative or a part for the walk.
grammar Model;

file         : 'language' INT imports* decl* EOF ;
imports      : 'import' path ('as' ID)? ;
oneExpr      : expr EOF ;                                        // a text that is one expression: --root, --set
fileRest     : decl* EOF ;                                       // where reading goes on after a mistake: in a file,
moduleRest   : member* '}' decl* EOF ;                           // in a module,
configRest   : configItem* '}' decl* EOF ;                       // in a configuration,
blockRest    : statement* '}' ;                                   // in a block

decl         : axisDecl | configDecl | variantDecl | interfaceDecl | moduleDecl | fnDecl | opDecl | encodingDecl
             | testDecl ;
axisDecl     : 'axis' ID ':' range ('by' expr)? ;
path         : name ('.' name)* ;
range        : low=expr '..' high=expr? ;

// --- Configurations --------------------------------------------------------------------------------------------------

configDecl   : 'config' ID ('file' STRING)? ('extends' base=ID)? '{' configItem* '}' ;
variantDecl  : 'variant' ID 'by' path ('|' path)* '{' variantCase* '}' ;
variantCase  : STRING ('|' STRING)* '{' configItem* '}' ;
configItem   : field | let | fnDecl | require | remove | refuse | ignore ;
field        : over='override'? name (',' name)* ':' type ('in' range)? ('from' path ('|' path)*)? ('=' expr)? ;
let          : 'let' name '=' expr ;
require      : 'require' expr (',' STRING)? ;
remove       : 'remove' name ;
refuse       : 'refuse' key (',' key)* ;
ignore       : 'ignore' key (',' key)* ;
key          : path | STRING ;

// --- Modules ---------------------------------------------------------------------------------------------------------

interfaceDecl: 'interface' ID params? '{' signature+ '}' ;
moduleDecl   : kind=('module' | 'model') ID params? ('extends' base=ID args)? '{' member* '}' ;
params       : '(' (param (',' param)*)? ')' ;
param        : name ':' type ('=' expr)? ;
member       : let | fnDecl | require | contextItem | section | removeMember
             | over='override'? (paramMember | constMember | stateMember | child | method | checkpoint) ;
contextItem  : 'context' expr ;
removeMember : 'remove' block_='checkpoint'? name ;
paramMember  : 'param' name at? ':' type ('=' default_=expr)? ('if' cond=expr)? ;
constMember  : 'const' name ':' type '=' expr ;
stateMember  : 'state' name ':' value=expr ('if' cond=expr)? ;
child        : name at? ':' value=expr ('if' cond=expr)? ;
method       : signature block ;
at           : 'at' (self='.' | tensor) ;
signature    : ('forward' | 'entry' name) params ('->' result)? ;
result       : resultItem | '(' resultItem (',' resultItem)+ ')' ;
resultItem   : (name ':')? type ;
fnDecl       : 'fn' name names ('=' expr | block) ;
names        : '(' (name (',' name)*)? ')' ;
block        : '{' statement* '}' ;
statement    : 'let' (name | '(' name (',' name)+ ')') '=' expr             # letStatement
             | 'for' name 'in' expr block                                   # forStatement
             | 'return' expr (',' expr)*                                    # returnStatement
             | name '=' expr                                                # assignStatement
             | path args                                                    # callStatement
             ;

// --- Types -----------------------------------------------------------------------------------------------------------

type         : simpleType optional='?'? ;
simpleType   : 'list' '[' type (',' expr)? ']'                              # listType
             | 'map' '[' type ']'                                           # mapType
             | 'index' ('(' expr ')')? shape                                # indexType
             | 'fn'                                                         # functionType
             | path args? shape?                                            # namedType
             | shape                                                        # tensorType
             | literal ('|' literal)*                                       # literalType
             ;
shape        : '[' (axis (',' axis)*)? ']' ;
axis         : ellipsis='...' | expr ;
literal      : STRING | INT | FLOAT | 'true' | 'false' | 'none' ;

// --- Expressions, tightest first -------------------------------------------------------------------------------------

expr         : postfix                                                      # postfixExpr
             | <assoc=right> expr op='^' expr                               # binary
             | '-' expr                                                     # negate
             | expr 'as' castType                                           # cast
             | expr op=('*' | '/' | '%') expr                               # binary
             | expr op=('+' | '-') expr                                     # binary
             | expr op=('==' | '!=' | '<' | '<=' | '>' | '>=' | 'in') expr  # binary
             | expr 'is' negated='not'? literal                             # is
             | 'not' expr                                                   # not
             | expr op='and' expr                                           # binary
             | expr op='or' expr                                            # binary
             | expr op='??' expr                                            # binary
             | <assoc=right> expr 'if' expr 'else' expr                     # conditional
             | 'fn' names '=' expr                                          # function
             ;
postfix      : primary suffix* ;
suffix       : '.' name | args | '[' slice (',' slice)* ']' ;
castType     : 'index' ('(' expr ')')? shape? | ID shape? | shape ;
slice        : ellipsis='...' | whole='..' | low=expr (dots='..' high=expr ('by' step=expr)?)? ;
args         : '(' (arg (',' arg)*)? ')' ;
arg          : (name ':')? expr ;
primary      : literal                                                      # literalPrimary
             | name                                                         # namePrimary
             | '(' expr (',' expr)* ')'                                     # parenPrimary
             | 'match' expr '{' arm+ '}'                                    # matchPrimary
             | '[' (expr (forClause | (',' expr)*))? ']'                    # listPrimary
             ;
forClause    : 'for' name 'in' low=expr (dots='..' high=expr?)? ('if' cond=expr)? ;
arm          : (literal ('|' literal)* ('as' name)? | wildcard='_') '=>' expr ;

// --- Checkpoints -----------------------------------------------------------------------------------------------------

checkpoint   : 'checkpoint' name STRING? '{' rule_* '}' ;
rule_        : file_=tensors '=' model=tensors via? when?                   # mapRule
             | tensor via when?                                             # viaRule
             | 'alias' alias=tensor '=' target=tensor when?                 # aliasRule
             | 'ignore' tensor (',' tensor)* when?                          # ignoreRule
             | 'encode' tensor 'as' expr when?                              # encodeRule
             | 'one_of' '{' alternative+ '}'                                # oneOfRule
             | 'for' ID '{' rule_* '}'                                      # forRule
             | 'config' '{' configEntry* '}'                                # configRule
             ;
via          : 'via' call (',' call)* ;
when         : 'when' expr ;
alternative  : name '{' rule_* '}' ;
configEntry  : path '=' expr when? | 'ignore' path (',' path)* ;
tensors      : tensor | '[' tensor (',' tensor)+ ']' ;
tensor       : STRING | seg ('.' seg)* ;
seg          : name | INT | FLOAT | '*' | '**' | '{' name rest='*'? '}' ;   // FLOAT: `0.1` in `a.0.1.b`, two numbers
call         : name args? ;

// --- Operations, encodings, sections, tests --------------------------------------------------------------------------

opDecl       : 'op' ID params '->' result '{' 'reference' (block | expr) kernel* '}' ;
kernel       : backend=('cpu' | 'glsl') STRING ('local_size' localSize=expr)? ('dispatch' dispatch=expr)?
               ('requires' name (',' name)*)? when? ;
encodingDecl : 'encoding' ID params? 'of' shape '{' part+ 'value' expr '}' ;
part         : 'part' name 'at' STRING ':' type ;

section      : 'policy' '{' policyEntry* '}'                                # policy
             | 'shard' '{' shardEntry* '}'                                  # shard
             | 'quantize' '{' quantizeEntry* '}'                            # quantize
             | 'place' '{' placeEntry* '}'                                  # place
             ;
policyEntry  : tensor (',' tensor)* ':' ID ;
shardEntry   : path (',' path)* 'over' ID ;
quantizeEntry: tensor (',' tensor)* ':' (ID (file_='or' 'file')? | never='never' 'below' ID) ;
placeEntry   : tensor ('[' range ']')? ':' name '(' INT ')' ;          // gpu(0), cpu(0)

testDecl     : 'test' STRING '{' testItem* '}' ;
testItem     : 'op' name                                                    # opTest
             | 'config' (STRING ('with' object)? | object)                  # configTest
             | 'checkpoint' (STRING | 'random' INT)                         # checkpointTest
             | 'input' name '=' expr                                        # inputTest
             | 'expect' STRING 'within' expr                                # expectTest
             | 'error' name STRING?                                         # errorTest
             | 'same' run (',' run)+ 'within' expr                          # sameTest
             ;
run          : call ('+' call)* ;
object       : '{' entry* '}' ;
entry        : name ':' (object | expr) ;

// --- Words -----------------------------------------------------------------------------------------------------------

// Every quoted word above may be a name, but for: let fn for in return match if else as is not and or by true false none
// list map index.
name         : ID | '_'
             | 'language' | 'import' | 'axis' | 'config' | 'file' | 'extends' | 'variant' | 'override' | 'from' | 'require'
             | 'remove' | 'refuse' | 'ignore' | 'interface' | 'module' | 'model' | 'context' | 'param' | 'const' | 'state'
             | 'at' | 'forward' | 'entry' | 'checkpoint' | 'via' | 'when' | 'alias' | 'encode' | 'one_of' | 'op'
             | 'reference' | 'cpu' | 'glsl' | 'local_size' | 'dispatch' | 'requires' | 'encoding' | 'of' | 'part'
             | 'value' | 'policy' | 'shard' | 'over' | 'quantize' | 'never' | 'below' | 'place' | 'test' | 'with'
             | 'random' | 'input' | 'expect' | 'within' | 'error' | 'same'
             ;
// Names for the words and signs that the program asks for by name; the rules above use the literals.
LANGUAGE: 'language' ;   IMPORT: 'import' ;     AXIS: 'axis' ;           CONFIG: 'config' ;   VARIANT: 'variant' ;
INTERFACE: 'interface' ; MODULE: 'module' ;     MODEL: 'model' ;         OP: 'op' ;           ENCODING: 'encoding' ;
TEST: 'test' ;           REQUIRE: 'require' ;   REFUSE: 'refuse' ;       PARAM: 'param' ;     CONST: 'const' ;
STATE: 'state' ;         CHECKPOINT: 'checkpoint' ; ALIAS: 'alias' ;     ENCODE: 'encode' ;   ONE_OF: 'one_of' ;
EXPECT: 'expect' ;       SAME: 'same' ;         FORWARD: 'forward' ;     OVERRIDE: 'override' ; VIA: 'via' ;
LET: 'let' ;  FN: 'fn' ;  FOR: 'for' ;  IN: 'in' ;  RETURN: 'return' ;  MATCH: 'match' ;  IF: 'if' ;  ELSE: 'else' ;
AS: 'as' ;  IS: 'is' ;  NOT: 'not' ;  AND: 'and' ;  OR: 'or' ;  TRUE: 'true' ;  FALSE: 'false' ;  NONE: 'none' ;
LIST: 'list' ;  MAP: 'map' ;  INDEX: 'index' ;  BY: 'by' ;  UNDERSCORE: '_' ;
LPAREN: '(' ;  RPAREN: ')' ;  LBRACK: '[' ;  RBRACK: ']' ;  LBRACE: '{' ;  RBRACE: '}' ;
COMMA: ',' ;  COLON: ':' ;  ASSIGN: '=' ;  ARROW: '=>' ;  RESULT: '->' ;  BAR: '|' ;  QUESTION: '?' ;
DOT: '.' ;  DOTS: '..' ;  ELLIPSIS: '...' ;
CARET: '^' ;  MINUS: '-' ;  PLUS: '+' ;  STAR: '*' ;  STARS: '**' ;  SLASH: '/' ;  PERCENT: '%' ;  COALESCE: '??' ;
EQUAL: '==' ;  UNEQUAL: '!=' ;  LESS: '<' ;  LESS_EQUAL: '<=' ;  GREATER: '>' ;  GREATER_EQUAL: '>=' ;

ID           : [A-Za-z_] [A-Za-z0-9_]* ;
INT          : [0-9] [0-9_]* ;
FLOAT        : [0-9]+ '.' [0-9]+ ([eE] [+-]? [0-9]+)? | [0-9]+ [eE] [+-]? [0-9]+ ;
STRING       : '"' (~["\\\r\n] | '\\' ~[\r\n])* '"' ;
DOC          : '///' (~[/\r\n] ~[\r\n]*)? -> channel(HIDDEN) ;  // before a declaration: its documentation
SKIPPED      : ([ \t\r\n]+ | '//' ~[\r\n]*) -> skip ;
UNTERMINATED : '"' (~["\\\r\n] | '\\' ~[\r\n])* '\\'? ;          // with UNKNOWN: each text has tokens, and what is
UNKNOWN      : . ;                                               // wrong with them is said before the parser runs
